/* An executable that has no role but the compile worker's. */
#include "worker/compile/compile_worker.h"

int main(int argc, char **argv)
{
    return compile_worker_main(argc, argv);
}
