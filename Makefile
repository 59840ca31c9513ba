# Two commands matter: `make run` and `make test`. Everything else is a part of them.
.PHONY: run test check lint fresh-test gpu-test screenshots image-test schemathesis bench coverage torture fuzz emulated docs setup build asan tsan bundle clean format-check help

help:
	@echo "make run [FILE=path] [ONCE=1] [PORT=8080]   set up, build, start the service, do the main job, keep serving"
	@echo "make test                                   set up, build and run every test (plain, then ASan+UBSan, TSan)"
	@echo "make check                                  the quick part, for every change: layout, C programs, a part of the service's tests"
	@echo "make lint                                   clang-tidy over the C code; a part of make check and make test"
	@echo "make fresh-test [PART=short]                run both of these in a fresh Debian 12 made by debootstrap (needs root)"
	@echo "make gpu-test [STEPS=\"contract kernels\"]     on a machine with an NVIDIA GPU: what needs one, into build/gpu/report.txt"
	@echo "make image-test                             build the container images with Debian's own tools, run and check them"
	@echo "make schemathesis [EXAMPLES=100]            try the whole API with generated requests, many of them"
	@echo "make bench [ONLY=rows] [MIB=1024]           measure, beside limits and peers (tests/bench/run.py --help)"
	@echo "make coverage                               the Python SDK's tests, and which of its lines they do not reach"
	@echo "make torture [MINUTES=30]                    put faults into the running service (tests/fault)"
	@echo "make fuzz [SECONDS=120] [TARGET=name]        run the fuzzers (tests/fuzz; needs clang)"
	@echo "make emulated [FORM=long]                    the cpu device on arm64, in qemu's emulation: are its results right?"
	@echo "make docs                                   build the documentation as a site in build/docs/site"
	@echo "make build | asan | tsan | bundle | screenshots | format-check | clean"

run:
	@FILE='$(FILE)' ONCE='$(ONCE)' PORT='$(PORT)' scripts/run.sh

test:
	@scripts/test.sh

check: setup
	@scripts/check.sh

lint: build
	@scripts/lint.sh

fresh-test:
	@PART='$(PART)' scripts/fresh-test.sh

gpu-test:
	@STEPS='$(STEPS)' scripts/gpu-test.sh

image-test:
	@scripts/image-test.sh

schemathesis:
	@EXAMPLES='$(EXAMPLES)' scripts/schemathesis.sh

bench:
	@scripts/bench.sh

coverage:
	@scripts/coverage.sh

torture:
	@MINUTES='$(MINUTES)' scripts/torture.sh

fuzz:
	@SECONDS_EACH='$(SECONDS)' TARGET='$(TARGET)' scripts/fuzz.sh

emulated:
	@FORM='$(FORM)' scripts/emulated.sh

docs:
	@scripts/docs.sh

setup:
	@scripts/setup.sh

build asan tsan: setup
	@scripts/build.sh $(if $(filter build,$@),release,$@)

bundle: setup
	@scripts/build.sh release bundle

screenshots: build
	@python3 scripts/screenshots.py build/release/service/gpurestd

format-check:
	@git ls-files '*.c' '*.h' | grep -vxFf .clang-format-ignore | xargs clang-format --dry-run --Werror

clean:
	rm -rf build
