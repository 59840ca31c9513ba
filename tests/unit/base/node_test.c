/* Names of nodes, and which one an id names. */
#include <criterion/criterion.h>

#include "base/node.h"

static void names(const char *id, const char *node, const char *rest, const char *tag)
{
    struct span without, found = node_of_id(span_of(id), &without), made = node_tag_of_id(span_of(id));

    cr_assert(span_is(found, node), "%s names %.*s", id, SPAN_ARG(found));
    cr_assert(span_is(without, rest), "%s without its node is %.*s", id, SPAN_ARG(without));
    cr_assert(span_is(made, tag), "the tag of %s is %.*s", id, SPAN_ARG(made));
}

Test(node, of_names_that_clients_choose)
{
    names("train", "", "train", "");
    names("n2.train", "n2", "train", "");
    names("n2.", "", "n2.", "");
    names(".train", "", ".train", "");
    names("N2.train", "", "N2.train", "");
    names("n2.a.b", "n2", "a.b", "");
    names("s_n2_train", "", "s_n2_train", "");
    names("a_b_c", "", "a_b_c", "");
    names("", "", "", "");
}

Test(node, of_ids_that_services_choose)
{
    names("s_0123456789ABCDEFGHIJKL", "", "s_0123456789ABCDEFGHIJKL", "012345");
    names("s_n2_0123456789ABCDEFGHIJKL", "n2", "s_n2_0123456789ABCDEFGHIJKL", "012345");
    names("x_gpurest-0_0123456789ABCDEFGHIJKL", "gpurest-0", "x_gpurest-0_0123456789ABCDEFGHIJKL", "012345");
    names("s__0123456789ABCDEFGHIJKL", "", "s__0123456789ABCDEFGHIJKL", "");
    names("S_n2_0123456789ABCDEFGHIJKL", "", "S_n2_0123456789ABCDEFGHIJKL", "");
    names("s_n2_0123456789ABCDEFGHIJK-", "", "s_n2_0123456789ABCDEFGHIJK-", "");
    names("s_n_2_0123456789ABCDEFGHIJKL", "", "s_n_2_0123456789ABCDEFGHIJKL", "");
    names("s_n20123456789ABCDEFGHIJKL", "", "s_n20123456789ABCDEFGHIJKL", "");
    names("0123456789ABCDEFGHIJKL", "", "0123456789ABCDEFGHIJKL", "");
}
