"""Programs for the driver's interface against a service, unchanged."""


def test_vector_add(run_program, url):
    assert run_program("vector_add", url=url)[0] == "Result = PASS\n"
