# Causeway. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build run demo docs deb test test-package test-all test-unit test-lab test-room test-backbone test-image image test-unit-file selftest sim sim-planted mutation fuzz bench bench-beside bench-instructions check clean

# A program from PyPI, beside whose transfer of a file ours stands.
WORMHOLE := build/benchmarks/venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the firmware: build/x86_64/causeway and build/aarch64/causeway, static and stripped
	@board/swift.sh firmware x86_64 & first=$$!; board/swift.sh firmware aarch64 && wait $$first
	@ls -l build/x86_64/causeway build/aarch64/causeway

run: ## the relay on this machine's own interfaces (CONFIG=file for another configuration)
	@board/swift.sh firmware x86_64
	build/x86_64/causeway run $(if $(CONFIG),--config $(CONFIG),--config config/causeway.conf)

demo: ## the main job in the radio lab: Bluetooth, Wi-Fi Direct and Ethernet peers meet through a box
	@mkdir -p build
	@board/virtual/host-packages.sh amd64
	@board/swift.sh firmware x86_64 > build/demo-build.log 2>&1 || { cat build/demo-build.log; exit 1; }
	@board/virtual/run.sh -t 240 demo

test: check test-unit fuzz selftest test-package test-lab ## everything that CI runs

test-unit: ## unit tests and the self-test in normal Swift, and 500 simulated networks
	Tests/unit.sh
	.build/debug/causeway selftest
	$(MAKE) sim

selftest: build ## the firmware's own self-test, on x86_64 and under qemu-aarch64-static, and its command line
	@board/virtual/host-packages.sh amd64 arm64 load
	build/x86_64/causeway selftest
	python3 Tests/CommandLine/command_line_test.py build/x86_64/causeway
	python3 Tests/CommandLine/join_test.py build/x86_64/causeway
	python3 Tests/Daemons/dissector_test.py
	python3 Tests/Benchmarks/generator_test.py build/x86_64/causeway
	printf '%s\n' daemons_test process_test users_test metrics_test top_test bundle_test explain_test status_test identity_test trust_test anchors_test kill_writes client_test admission_test applications_test introduction_test certificates_test gathering_test disorder_test commands_test consent_test chat_test files_test fetch_test receivers_test examples_test library_test mesh_test probe_test hall_test hostile_test capture_test page_test dhcp_test announcements_test places_test | \
	  xargs -P 2 -I{} python3 Tests/Daemons/{}.py build/x86_64/causeway
	qemu-aarch64-static build/aarch64/causeway selftest

deb: ## a Debian package of the firmware: build/causeway_VERSION_ARCH.deb (ARCH=amd64, default arm64)
	@board/virtual/host-packages.sh $(or $(ARCH),arm64) package
	board/swift.sh firmware $(if $(filter amd64,$(ARCH)),x86_64,aarch64)
	board/deb.sh $(or $(ARCH),arm64)

image: ## a card for a board: build/image/BOARD/causeway.img (BOARD=rpi4, rpi-zero-2w, virtual-arm64; UPDATE_KEY=NAME.key signs updates)
	@board/virtual/host-packages.sh arm64 package image
	board/swift.sh firmware aarch64
	board/deb.sh arm64
	CAUSEWAY_UPDATE_KEY=$(UPDATE_KEY) board/image/build.sh $(BOARD)

test-image: ## the cards of all boards, and the virtual board's in use: first start, restart, false updates, an update, cut after every write
	@rm -rf build/image/key; board/image/update-key.sh build/image/key/update.key
	$(MAKE) image BOARD=virtual-arm64 UPDATE_KEY=build/image/key/update.key
	python3 Tests/Image/slots_test.py Bundles
	CAUSEWAY_UPDATE_KEY=build/image/key/update.key python3 Tests/Image/image_test.py
	for board in rpi4 rpi-zero-2w; do board/image/build.sh $$board && python3 Tests/Image/card_test.py $$board || exit 1; done

test-package: build ## the package on Debian 12 and 13, the scripts for OpenRC, BusyBox and sysvinit, and a card's shell of updates
	@board/virtual/host-packages.sh amd64 arm64 package
	python3 Tests/Package/deb_test.py
	python3 Tests/Package/init_test.py
	python3 Tests/Image/slots_test.py Configuration Contents

test-unit-file: ## the units of config and the README's installation, under systemd in the radio lab
	@board/virtual/host-packages.sh amd64
	board/swift.sh firmware x86_64
	board/virtual/run.sh -t 240 unit
	board/virtual/run.sh -t 240 receive_unit

test-lab: build ## every scenario in the radio lab, and one of them on aarch64
	@board/virtual/host-packages.sh amd64 arm64
	Tests/Lab/run-all.sh
	Tests/Lab/run-all.sh -a arm64 -j 1 -t 900 demo

test-all: test ## everything that CI runs, and then what needs the whole machine for itself
	$(MAKE) test-room
	$(MAKE) test-backbone
	$(MAKE) test-image

test-backbone: ## four boxes in a diamond: the mesh of their radios, Causeway alone, batman-adv
	@board/virtual/host-packages.sh amd64
	board/swift.sh firmware x86_64
	for how in mesh links batman; do board/virtual/run.sh -t 400 backbone $$how || exit 1; done

# Beside other work on the machine its times mean nothing.
test-room: ## 16 peers on Bluetooth LE around a box with seven places, and a session of nine, on two processors
	@board/virtual/host-packages.sh amd64
	board/swift.sh firmware x86_64
	board/virtual/run.sh -t 560 -m 1500 room
	board/virtual/run.sh -t 560 -m 1500 nine
	board/virtual/run.sh -t 560 -m 1500 room relay

sim: ## simulated networks: SEEDS=n [FIRST=n] for many, SEED=n [LESS="nodes=3 faults=cut"] tells one
	board/swift.sh host build -c release --product simulate
ifdef SEED
	.build/release/simulate story $(SEED) $(LESS)
else
	CAUSEWAY_COMMIT=$${CAUSEWAY_COMMIT:-$$(git rev-parse --short HEAD 2>/dev/null || echo unknown)} \
	  python3 Tests/Simulate/run.py .build/release/simulate --seeds $(or $(SEEDS),500) --first $(or $(FIRST),1)
endif

sim-planted: ## a planted bug: the simulation must find it within 1000 seeds
	CAUSEWAY_PLANTED_BUG=1 SWIFT_SCRATCH=.build/planted board/swift.sh host build -c release --product simulate
	python3 Tests/Simulate/run.py .build/planted/release/simulate --seeds 1000 --expect-failure

mutation: ## checks of the core and the rim disabled one after the other: each must turn a test red
	python3 Tests/Mutation/mutate.py $(if $(ONLY),--only '$(ONLY)')

fuzz: ## every fuzz target for TIME seconds (default 6), two at a time, and what a finding is replayed with
	Tests/Fuzz/run.sh $(or $(TIME),6)

bench-instructions: build ## instructions of a forwarded frame on x86_64 and aarch64, under QEMU, beside the committed budget
	@board/virtual/host-packages.sh bench
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Benchmarks/instructions.py"

bench: build ## measured figures: journal, TLS, relaying, short messages, security, halls, hostile members; ratios against limits taken in the same run
	build/x86_64/causeway selftest --bench
	python3 Tests/Daemons/relay.py build/x86_64/causeway
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Daemons/small.py build/x86_64/causeway"
	python3 Tests/Daemons/costs.py build/x86_64/causeway
	python3 Tests/Daemons/half_open.py build/x86_64/causeway
	python3 Tests/Daemons/half_open.py build/x86_64/causeway --prefix
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Daemons/rest.py build/x86_64/causeway"
	python3 Tests/Daemons/hall.py build/x86_64/causeway --nodes 8,16,24,40,64,100
	python3 Tests/Daemons/gathering.py build/x86_64/causeway
	python3 Tests/Daemons/hostile.py build/x86_64/causeway
	$(MAKE) bench-beside QUICK=1

bench-beside: ## the relay beside haproxy, NATS, mosquitto, a plain hub, scp and others; writes docs/benchmarks.md in 15 minutes (QUICK=1 prints one short round)
	@board/virtual/host-packages.sh load peers
	board/swift.sh firmware x86_64
	@test -x $(WORMHOLE)/bin/wormhole || { python3 -m venv $(WORMHOLE) && \
	  $(WORMHOLE)/bin/pip install -q magic-wormhole==0.24.0 magic-wormhole-mailbox-server==0.8.0; } || echo "without magic-wormhole"
	unshare -n sh -c "ip link set lo up; exec python3 Tests/Benchmarks/beside.py build/x86_64/causeway $(if $(QUICK),--quick)"

docs: ## the library's reference, into build/docs/Causeway; a warning fails it
	board/docs.sh

check: ## format, lint and import rules
	python3 Tests/Style/check.py

clean: ## remove what was built here (the caches of packages and images stay)
	rm -rf build .build
