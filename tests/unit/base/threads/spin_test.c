/* Spin budgets depend on the number of processors. */
#include <criterion/criterion.h>

#include "base/bounds.h"
#include "base/threads/spin.h"

Test(spin, nobody_spins_on_a_single_processor)
{
    struct spin_budgets b = spin_budgets_for(1);

    cr_assert_eq(b.call_ns + b.worker_ns + b.busy_ns + b.loop_ns, 0);
}

Test(spin, few_processors_are_not_taken_away_by_event_loops)
{
    for (unsigned cpus = SPIN_CPUS_FEW; cpus < SPIN_CPUS_MANY; cpus++) {
        cr_assert_eq(spin_budgets_for(cpus).loop_ns, 0);
        cr_assert_gt(spin_budgets_for(cpus).call_ns, 0);
        cr_assert_lt(spin_budgets_for(cpus).worker_ns, spin_budgets_for(SPIN_CPUS_MANY).worker_ns);
    }
    cr_assert_gt(spin_budgets_for(SPIN_CPUS_MANY).loop_ns, 0);
}

Test(spin, a_control_group_bounds_the_processors)
{
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("max 100000\n")), UINT32_MAX);
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("250000 100000\n")), 2);
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("50000 100000\n")), 1);
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("50000 0\n")), UINT32_MAX);
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("")), UINT32_MAX);
    cr_assert_eq(spin_quota_cpus((struct span)SPAN_LITERAL("nonsense")), UINT32_MAX);
}

Test(spin, what_was_set_wins)
{
    spin_cpus_set(7);
    cr_assert_eq(spin_cpus(), 7);
    cr_assert_eq(spin_budgets()->loop_ns, spin_budgets_for(7).loop_ns);
}

Test(spin, otherwise_the_machine_is_asked)
{
    cr_assert_geq(spin_cpus(), 1);
}
