/* An executable with the compile worker's role only. */
#include "worker/compile/compile_worker.h"

int main(int argc, char **argv)
{
    return compile_worker_main(argc, argv);
}
