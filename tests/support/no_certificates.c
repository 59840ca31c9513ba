/* libgit2, of which Criterion has its differences, reads all certificate authorities of the machine at the start of each process, and Criterion
 * starts one for every test: under ASan that is a third of a short program's processor time. This takes the place of Mbed TLS's function. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);

int mbedtls_x509_crt_parse_file(void *chain, const char *path)
{
    (void)chain;
    (void)path;
    return 0;
}
