# Causeway. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build demo quick docs deb test test-package test-all test-unit test-lab test-room test-backbone test-image image selftest sim sim-planted mutation fuzz bench bench-beside bench-instructions check clean

# A program from PyPI, whose file transfer `bench-beside` compares with Causeway's.
WORMHOLE := build/benchmarks/venv

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the firmware, static and stripped: build/x86_64/causeway and build/aarch64/causeway
	@board/build/swift.sh firmware x86_64 & first=$$!; board/build/swift.sh firmware aarch64 && wait $$first
	@ls -l build/x86_64/causeway build/aarch64/causeway

demo: ## run the main scenario in the radio lab: a box connects Bluetooth, Wi-Fi Direct and Ethernet peers
	@board/build/progress.sh firmware board/build/swift.sh development x86_64 & firmware=$$!; trap "kill $$firmware 2> /dev/null" EXIT; \
	  board/build/progress.sh packages board/build/host-packages.sh amd64 && \
	  board/build/progress.sh lab board/lab/image.sh amd64 && wait $$firmware
	@board/lab/run.sh -f build/development/x86_64/causeway -t 240 demo

quick: ## run the unit tests of one module and build only what they import (MODULE=Mesh; FILTER=test for some of them)
	@Tests/quick.sh "$(MODULE)" $(if $(FILTER),--filter '$(FILTER)')

# The tests of daemons and those of packages wait most of the time, so they run side by side.
test: check docs test-unit build ## run everything that CI runs
	@board/build/host-packages.sh amd64 arm64 load package
	$(MAKE) -j 2 --output-sync=target selftest test-package
	$(MAKE) test-lab

test-unit: ## run unit tests, all inputs of the fuzz targets, the self-test in normal Swift, and 500 simulated networks
	Tests/unit.sh
	Tests/Fuzz/run.sh corpus
	.build/debug/causeway selftest
	$(MAKE) sim SIMULATE=.build/debug/simulate

selftest: build ## run the firmware's self-test on x86_64 and under qemu-aarch64-static, and test its command line and daemon
	@board/build/host-packages.sh amd64 arm64 load
	build/x86_64/causeway selftest
	python3 Tests/CommandLine/command_line_test.py build/x86_64/causeway
	python3 Tests/CommandLine/join_test.py build/x86_64/causeway
	python3 Tests/Benchmarks/generator_test.py build/x86_64/causeway
	python3 Tests/Daemons/run.py build/x86_64/causeway
	qemu-aarch64-static build/aarch64/causeway selftest

deb: ## build a Debian package of the firmware: build/causeway_VERSION_ARCH.deb (ARCH=amd64; default arm64)
	@board/build/host-packages.sh $(or $(ARCH),arm64) package
	board/build/swift.sh firmware $(if $(filter amd64,$(ARCH)),x86_64,aarch64)
	board/build/deb.sh $(or $(ARCH),arm64)

image: ## build a card image for a board: build/image/BOARD/causeway.img (BOARD=rpi4, rpi-zero-2w, virtual-arm64; UPDATE_KEY=NAME.key signs updates)
	@board/build/host-packages.sh arm64 package image
	board/build/swift.sh firmware aarch64
	board/build/deb.sh arm64
	CAUSEWAY_UPDATE_KEY=$(UPDATE_KEY) board/build/image/build.sh $(BOARD)

test-image: ## test the card images of all boards, and on the virtual board: first start, restart, invalid updates, an update with power cuts after every write
	@rm -rf build/image/key; board/build/image/update-key.sh build/image/key/update.key
	$(MAKE) image BOARD=virtual-arm64 UPDATE_KEY=build/image/key/update.key
	python3 Tests/Image/slots_test.py Bundles
	CAUSEWAY_UPDATE_KEY=build/image/key/update.key python3 Tests/Image/image_test.py
	for board in rpi4 rpi-zero-2w; do board/build/image/build.sh $$board && python3 Tests/Image/card_test.py $$board || exit 1; done

test-package: build ## test the package on Debian 12 and 13, the scripts for OpenRC, BusyBox and sysvinit, and a card's scripts for updates and the first start
	@board/build/host-packages.sh amd64 arm64 package
	python3 Tests/Package/deb_test.py
	python3 Tests/Package/init_test.py
	python3 Tests/Image/slots_test.py Configuration Contents FirstStart

test-lab: build ## run every scenario of Tests/Lab/scenarios in the radio lab, and one of them on aarch64
	@board/build/host-packages.sh amd64 arm64
	Tests/Lab/run-all.sh
	Tests/Lab/run-all.sh -a arm64 -j 1 -t 900 demo

# Together with what these call, every target of this file.
test-all: clean ## delete build products, run everything that CI runs, then everything that takes long or needs the whole machine
	$(MAKE) test
	$(MAKE) fuzz
	$(MAKE) demo
	$(MAKE) quick MODULE=Mesh
	$(MAKE) sim-planted
	$(MAKE) mutation
	$(MAKE) deb
	$(MAKE) bench-instructions
	$(MAKE) test-room
	$(MAKE) test-backbone
	$(MAKE) test-image
	$(MAKE) bench

test-backbone: ## compare backbones of four boxes in a diamond: the radios' mesh, Causeway alone, batman-adv
	@board/build/host-packages.sh amd64
	board/build/swift.sh firmware x86_64
	for how in mesh links batman; do board/lab/run.sh -t 400 backbone $$how || exit 1; done

# Its times are meaningless if the machine does other work.
test-room: ## run 16 Bluetooth LE peers around a box with seven places, and a session of nine, on two processors
	@board/build/host-packages.sh amd64
	board/build/swift.sh firmware x86_64
	board/lab/run.sh -t 560 -m 1500 room
	board/lab/run.sh -t 560 -m 1500 nine
	board/lab/run.sh -t 560 -m 1500 room relay

# The optimised program is twice as fast. The one of the unit tests' build checks indices and overflows.
SIMULATE := .build/release/simulate
sim: ## run simulated networks: SEEDS=n [FIRST=n] for many, SEED=n [LESS="nodes=3 faults=cut"] prints one
ifeq ($(SIMULATE),.build/release/simulate)
	board/build/swift.sh host build -c release --product simulate
endif
ifdef SEED
	$(SIMULATE) story $(SEED) $(LESS)
else
	CAUSEWAY_COMMIT=$${CAUSEWAY_COMMIT:-$$(git rev-parse --short HEAD 2>/dev/null || echo unknown)} \
	  python3 Tests/Simulate/run.py $(SIMULATE) --seeds $(or $(SEEDS),500) --first $(or $(FIRST),1)
endif

sim-planted: ## plant a bug, which the simulation must find within 1000 seeds
	CAUSEWAY_PLANTED_BUG=1 SWIFT_SCRATCH=.build/planted board/build/swift.sh host build -c release --product simulate
	python3 Tests/Simulate/run.py .build/planted/release/simulate --seeds 1000 --expect-failure

mutation: ## disable the checks of the core and the rim one by one; each must make a test fail (ONLY=TEXT selects some)
	python3 Tests/Mutation/mutate.py $(if $(ONLY),--only '$(ONLY)')

fuzz: ## run every fuzz target for TIME seconds (default 6), two at a time; prints how to replay a finding
	Tests/Fuzz/run.sh $(or $(TIME),6)

bench-instructions: build ## count instructions per forwarded frame on x86_64 and aarch64 under QEMU, against the committed budget
	@board/build/host-packages.sh bench
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Benchmarks/instructions.py"

bench: build ## measure journal, TLS, relaying, short messages, security, halls and hostile members; compare ratios with limits measured in the same run
	build/x86_64/causeway selftest --bench
	python3 Tests/Daemons/run.py build/x86_64/causeway relay
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Daemons/run.py build/x86_64/causeway small"
	python3 Tests/Daemons/run.py build/x86_64/causeway costs
	python3 Tests/Daemons/run.py build/x86_64/causeway half_open
	python3 Tests/Daemons/run.py build/x86_64/causeway half_open --prefix
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Daemons/run.py build/x86_64/causeway rest"
	python3 Tests/Daemons/run.py build/x86_64/causeway hall --nodes 8,16,24,40,64,100
	python3 Tests/Daemons/run.py build/x86_64/causeway gathering
	python3 Tests/Daemons/run.py build/x86_64/causeway hostile
	$(MAKE) bench-beside QUICK=1

bench-beside: ## compare the relay with haproxy, NATS, mosquitto, a plain hub, scp and others; writes docs/measurements/benchmarks.md in 15 minutes (QUICK=1 prints one short round)
	@board/build/host-packages.sh load peers
	board/build/swift.sh firmware x86_64
	@test -x $(WORMHOLE)/bin/wormhole || { python3 -m venv $(WORMHOLE) && \
	  $(WORMHOLE)/bin/pip install -q magic-wormhole==0.24.0 magic-wormhole-mailbox-server==0.8.0; } || echo "without magic-wormhole"
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Benchmarks/beside.py build/x86_64/causeway $(if $(QUICK),--quick)"

docs: ## build the library's reference in build/docs/Causeway; fails on a warning
	board/build/docs.sh

check: ## check format, lint and import rules
	python3 Tests/Style/check.py

clean: ## remove build products (the caches of packages and images remain)
	rm -rf build .build
