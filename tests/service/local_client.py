"""A client on a Unix socket that receives the descriptors that come with answers."""
import array
import http.client
import mmap
import os
import socket

from service_under_test import Client

DESCRIPTORS_MAX = 8


class TakingSocket(socket.socket):
    """A socket file for http.client, which reads by recv_into() alone."""

    def __init__(self):
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.taken = []

    def recv_into(self, buffer, nbytes=0, flags=0):
        count, ancillary, _, _ = self.recvmsg_into([memoryview(buffer)[:nbytes or None]], socket.CMSG_SPACE(4 * DESCRIPTORS_MAX), flags)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(data[:len(data) // 4 * 4])
                self.taken += fds
        return count


class LocalConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = TakingSocket()
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class LocalClient(Client):
    """As Client; take() returns the descriptor that came with an answer."""

    def __init__(self, path, headers=None, timeout=60):
        super().__init__("localhost", 0, headers, timeout)
        self.path = path

    def connect(self):
        return LocalConnection(self.path, self.timeout)

    def take(self):
        """The only descriptor that has arrived."""
        fds, self.connection.sock.taken = self.connection.sock.taken, []
        assert len(fds) == 1, fds
        return fds[0]

    def share(self, buffer):
        """The mapped memory of a buffer; the caller closes it."""
        answer = self.post(buffer + "/share")
        assert answer.status == 200, answer
        fd = self.take()
        try:
            return mmap.mmap(fd, answer.json()["size"])
        finally:
            os.close(fd)
