# Orrery's front door. Each target installs what it needs, then builds, then does what it is called.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: serve build test asan tsan sanitized check-format bench crash backups bit-flips corruption abuse feed-torture query-torture processor-torture chaos fuzz format tidy packages npm test-packages dist test-dist clean

JOBS ?= $(shell nproc)
# Some tests mostly wait, for documents to expire or for a browser: one more than there are processors. The longest have
# a COST in CMake, and begin first.
TEST_JOBS ?= $(shell echo $$(($(JOBS) + 1)))
CMAKE_ARGS := -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
export CCACHE_SLOPPINESS := pch_defines,time_macros
CTEST := ctest --output-on-failure --no-tests=error

# make serve: build the release binary and run it on its defaults.
serve: build
	./build/orrery serve

build: packages
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build --target orrery orrery_client_archive orrery_processor_archive orrery_shared -j $(JOBS)

# make test: every test, and the format. make test ONLY=contract runs those whose name matches.
test: packages npm test-packages $(if $(ONLY),,check-format)
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build -j $(JOBS)
	$(if $(ONLY),,@$(MAKE) --no-print-directory sanitized)
	@rm -f build/retries.txt
	cd build && ORRERY_RETRIES=$(CURDIR)/build/retries.txt $(CTEST) -j $(TEST_JOBS) $(if $(ONLY),-R '$(ONLY)'); \
	  status=$$?; if [ -s retries.txt ]; then echo "Tried again:"; cat retries.txt; fi; exit $$status

# The unit and contract tests under sanitizers. The symbolizer gives the frames of their reports names.
SYMBOLIZER := /usr/bin/llvm-symbolizer-19
export ASAN_OPTIONS := detect_stack_use_after_return=1 external_symbolizer_path=$(SYMBOLIZER)
export UBSAN_OPTIONS := print_stacktrace=1 external_symbolizer_path=$(SYMBOLIZER)
export TSAN_OPTIONS := halt_on_error=1 second_deadlock_stack=1 external_symbolizer_path=$(SYMBOLIZER) \
  suppressions=$(CURDIR)/tests/sanitizers/tsan.supp
asan: packages
	@sh scripts/install.sh scripts/sanitizer-packages.txt
	cmake --preset asan $(CMAKE_ARGS) > /dev/null
	cmake --build build-asan --target orrery unit_tests fuzzers -j $(JOBS)
	cd build-asan && $(CTEST) -j $(JOBS) -L 'unit|contract|fuzz'

tsan: packages
	@sh scripts/install.sh scripts/sanitizer-packages.txt
	cmake --preset tsan $(CMAKE_ARGS) > /dev/null
	cmake --build build-tsan --target orrery unit_tests -j $(JOBS)
	cd build-tsan && $(CTEST) -j $(JOBS) -L 'unit|contract'

# Only what make test runs under sanitizers: the unit tests of the modules on the path of a write.
sanitized: packages
	@sh scripts/install.sh scripts/sanitizer-packages.txt
	cmake --preset asan $(CMAKE_ARGS) > /dev/null
	cmake --build build-asan --target write_path_tests -j $(JOBS)
	cmake --preset tsan $(CMAKE_ARGS) > /dev/null
	cmake --build build-tsan --target write_path_tests -j $(JOBS)

# make bench: every row, a few minutes. make bench ONLY=point-read-cpu runs one.
bench: packages
	@sh scripts/install.sh bench/packages.txt
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build --target orrery orrery_load rocksdb_baseline redis_stream orrery_push \
	  processor_load sdk_reads query_plan orrery_portable -j $(JOBS)
	/usr/bin/python3 bench/run.py $(if $(ONLY),--only $(ONLY))

# make crash KILLS=1000 SEED=42: kill the server until it breaks a promise, and then again with power cuts.
KILLS ?= 200
crash: build
	cmake --build build --target orrery_fault_shim
	/usr/bin/python3 tests/fault/crash_test.py --binary build/orrery --kills $(KILLS) $(if $(SEED),--seed $(SEED))
	/usr/bin/python3 tests/fault/crash_test.py --binary build/orrery --kills $(KILLS) $(if $(SEED),--seed $(SEED)) --power-loss

# make backups KILLS=200 SEED=42: kill the server while it takes back-ups, and the command that restores them.
backups: build
	ORRERY_BINARY=build/orrery /usr/bin/python3 tests/fault/backup_test.py --kills $(KILLS) $(if $(SEED),--seed $(SEED))

# make bit-flips FLIPS=1000 SEED=42: flip bits in the tables of a store, one at a time, and have orrery check find them.
bit-flips: build
	ORRERY_BINARY=build/orrery /usr/bin/python3 tests/fault/check_test.py --flips $(or $(FLIPS),1000) $(if $(SEED),--seed $(SEED))

# make corruption ROUNDS=300 SEED=42: damage the files of a store, one place at a time, and start the server on it.
ROUNDS ?= 300
corruption: build
	/usr/bin/python3 tests/fault/corruption_test.py --binary build/orrery --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

# make abuse: clients that do their worst, and what an innocent one notices of it. make abuse ONLY=feed runs some.
abuse: build
	/usr/bin/python3 tests/fault/abuse_test.py --binary build/orrery $(if $(ONLY),--only $(ONLY))

# make feed-torture SEED=42: random histories against a model of the change feed, until one breaks it.
STEPS ?= 0
feed-torture: build
	/usr/bin/python3 tests/simulation/feed_torture.py --binary build/orrery --steps $(STEPS) $(if $(SEED),--seed $(SEED))

# make query-torture SEED=42: random queries against a reference, until one is answered otherwise.
query-torture: build
	/usr/bin/python3 tests/query/query_torture.py --binary build/orrery --seeds $(or $(SEEDS),0) $(if $(SEED),--seed $(SEED))

# make processor-torture SCHEDULES=1000 SEED=42: random histories of hosts of the processor, simulated.
processor-torture: packages
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build --target processor_torture -j $(JOBS)
	./build/bin/processor_torture $(or $(SCHEDULES),100000) $(or $(SEED),1)

# make chaos DURATION=600 SEED=42: hosts of the processor killed, stopped and restarted, the server too.
chaos: packages
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build --target orrery chaos_host -j $(JOBS)
	/usr/bin/python3 tests/chaos/chaos.py --binary build/orrery --host build/bin/chaos_host \
	  --duration $(or $(DURATION),100) $(if $(SEED),--seed $(SEED))

# make fuzz DURATION=300: each fuzz target for that many seconds.
fuzz: packages
	cmake --preset fuzz $(CMAKE_ARGS) > /dev/null
	cmake --build build-fuzz --target fuzzers -j $(JOBS)
	sh tests/fuzz/run.sh build-fuzz $(or $(DURATION),60) $(JOBS)

format: packages
	@sh scripts/install.sh scripts/format-packages.txt
	git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

check-format: packages
	@sh scripts/install.sh scripts/format-packages.txt
	git ls-files '*.cc' '*.h' | xargs -P $(JOBS) -n 40 clang-format-19 --dry-run -Werror

# make tidy: clang-tidy over every source file, and every header compiled alone.
tidy: packages
	@sh scripts/install.sh scripts/format-packages.txt
	cmake --preset tidy $(CMAKE_ARGS) > /dev/null
	cmake --build build-tidy --target orrery_pch -j $(JOBS)
	git ls-files 'src/*.cc' | grep -vE '_(fuzz|test)\.cc' | xargs -P $(JOBS) -n 4 clang-tidy-19 --quiet -p build-tidy
	/usr/bin/python3 tests/layers/check_headers.py . build-tidy

packages:
	@sh scripts/install.sh packages.txt

npm: packages
	@sh scripts/install.sh --node
	@sh scripts/install.sh tests/explorer/packages.txt
	@for dir in tests/sdks tests/sdks/newest tests/explorer; do (cd $$dir && \
	  if [ ! -d node_modules ] || [ package-lock.json -nt node_modules ]; then \
	    npm ci --no-audit --no-fund --loglevel=error && touch node_modules; fi) || exit 1; done

test-packages: packages
	@sh scripts/install.sh tests/cli/packages.txt

# make dist: everything that is handed out, in dist/.
dist: packages
	@sh scripts/install.sh packaging/packages.txt
	@sh scripts/install.sh --node
	cmake --preset release $(CMAKE_ARGS) > /dev/null
	cmake --build build --target orrery orrery_portable orrery_client_archive orrery_processor_archive orrery_shared -j $(JOBS)
	/usr/bin/python3 packaging/dist.py

# make test-dist: what make dist has made, installed and run. Wants root.
test-dist: dist
	@sh scripts/install.sh tests/dist/packages.txt
	/usr/bin/python3 tests/dist/run_all.py dist

clean:
	rm -rf build build-* dist
