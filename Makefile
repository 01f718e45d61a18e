# Causeway. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build run demo test test-unit test-lab selftest sim fuzz bench check clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the firmware: build/x86_64/causeway and build/aarch64/causeway, static and stripped
	@board/swift.sh firmware x86_64
	@board/swift.sh firmware aarch64
	@ls -l build/x86_64/causeway build/aarch64/causeway

run: ## the relay on this machine's own interfaces (CONFIG=file for another configuration)
	@board/swift.sh firmware x86_64
	build/x86_64/causeway run $(if $(CONFIG),--config $(CONFIG),--config config/causeway.conf)

demo: ## the main job in the radio lab: Bluetooth, Wi-Fi Direct and Ethernet peers meet through a box
	@mkdir -p build
	@board/virtual/host-packages.sh amd64
	@board/swift.sh firmware x86_64 > build/demo-build.log 2>&1 || { cat build/demo-build.log; exit 1; }
	@board/virtual/run.sh -t 240 demo

test: check test-unit fuzz selftest test-lab ## everything that CI runs

test-unit: ## unit tests and the simulation, in normal Swift
	board/swift.sh host test

selftest: build ## the firmware's own self-test, on x86_64 and under qemu-aarch64-static, and its command line
	@board/virtual/host-packages.sh amd64 arm64
	build/x86_64/causeway selftest
	python3 Tests/CommandLine/command_line_test.py build/x86_64/causeway
	python3 Tests/Daemons/identity_test.py build/x86_64/causeway
	python3 Tests/Daemons/kill_writes.py build/x86_64/causeway
	qemu-aarch64-static build/aarch64/causeway selftest

test-lab: build ## every scenario in the radio lab, and one of them on aarch64
	@board/virtual/host-packages.sh amd64 arm64
	Tests/Lab/run-all.sh
	Tests/Lab/run-all.sh -a arm64 -j 1 -t 900 demo

sim: ## the simulation alone: SEEDS=n [FIRST=n] for many, SEED=n to replay one
	CAUSEWAY_SIM_SEEDS=$(SEEDS) CAUSEWAY_SIM_FIRST=$(FIRST) CAUSEWAY_SIM_SEED=$(SEED) \
	  board/swift.sh host test --filter SimulatorTests

fuzz: ## every fuzz target for TIME seconds (default 20), two at a time, and what a finding is replayed with
	Tests/Fuzz/run.sh $(or $(TIME),20)

bench: build ## measured figures: journal, TLS, relaying, security; ratios against limits taken in the same run
	build/x86_64/causeway selftest --bench
	python3 Tests/Daemons/relay.py build/x86_64/causeway
	python3 Tests/Daemons/costs.py build/x86_64/causeway
	python3 Tests/Daemons/half_open.py build/x86_64/causeway
	python3 Tests/Daemons/half_open.py build/x86_64/causeway --prefix

check: ## format, lint and import rules
	python3 Tests/Style/check.py

clean: ## remove what was built here (the caches of packages and images stay)
	rm -rf build .build
