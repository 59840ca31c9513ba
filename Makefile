# Two commands matter: `make run` and `make test`. Everything else is a part of them.
.PHONY: run test setup build asan tsan clean format-check help

help:
	@echo "make run [FILE=path] [ONCE=1] [PORT=8080]   set up, build, start the service, do the main job, keep serving"
	@echo "make test                                   set up, build and run every test (plain, then ASan+UBSan, TSan)"
	@echo "make build | asan | tsan | format-check | clean"

run:
	@FILE='$(FILE)' ONCE='$(ONCE)' PORT='$(PORT)' scripts/run.sh

test:
	@scripts/test.sh

setup:
	@scripts/setup.sh

build asan tsan: setup
	@scripts/build.sh $(if $(filter build,$@),release,$@)

format-check:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

clean:
	rm -rf build
