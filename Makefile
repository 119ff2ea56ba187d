# The commands of the README. Each sets up what it needs first, and does nothing twice.
.DEFAULT_GOAL := help
.PHONY: help setup build plan test test-frameworks lint bench accuracy gpu-check clean

ARGS ?= --model gpt2-small --target-batch 64
# For test-frameworks: `make test-frameworks FRAMEWORKS=--remove` keeps one environment at a time.
FRAMEWORKS ?=
CARGO := cargo
# One profile for everything that touches libtorch: its bindings take minutes to compile.
PROFILE := --release

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## find or install PyTorch 2.11 and check for a compiler
	@scripts/setup.sh build

build: setup ## build vramfit, its worker and the virtual GPU into target/release
	@test -e target/release/vramfit-worker || \
		echo "building vramfit (once; PyTorch's bindings take about five minutes)" >&2
	@$(CARGO) build $(PROFILE) --workspace --quiet

plan: build ## plan a training run: make plan ARGS="--model resnet50 --target-batch 64"
	@target/release/vramfit plan $(ARGS)

test: ## run all tests
	@scripts/setup.sh test
	@$(CARGO) build $(PROFILE) --workspace --quiet
	$(CARGO) test $(PROFILE) --workspace

test-frameworks: ## run more programs of the frameworks, and with every supported PyTorch (downloads 9 GB once)
	@scripts/setup.sh test
	@$(CARGO) build $(PROFILE) --workspace --quiet
	@scripts/test-frameworks.sh $(FRAMEWORKS)

lint: ## check formatting, lints and documentation
	@scripts/setup.sh build
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(PROFILE) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(PROFILE) --workspace --no-deps --document-private-items --quiet

bench: ## measure vramfit beside other ways to learn the same (writes docs/benchmarks.md)
	@scripts/setup.sh test
	@$(CARGO) build $(PROFILE) --workspace --quiet
	@scripts/bench.sh

accuracy: ## compare with published measurements of real GPUs (writes docs/accuracy.md; downloads 6 GB once)
	@scripts/setup.sh test
	@$(CARGO) build $(PROFILE) --workspace --quiet
	@scripts/accuracy.sh

gpu-check: build ## compare a real GPU with its virtual twin (results in gpu-check-results/)
	@scripts/gpu-check.sh

clean: ## remove what was built (not the Python environment)
	$(CARGO) clean
