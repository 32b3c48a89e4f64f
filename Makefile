# make run     the main job: builds, checks and decides the examples, and starts the demo
# make test    all tests, with what they need

.DEFAULT_GOAL := build
.PHONY: build playground run setup test kills pairs shell clocks race peers peers-long fuzz cover lint bench generate update ci

BIN ?= bin
PACKAGES ?= ./...

build: ## bin/agf-validate and bin/assent, static: they run in any Linux and in an empty image
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(BIN)/ ./cmd/...

playground: ## bin/playground: a page that checks, decides, compares and asks in the browser; static files
	go run ./playground/site -out $(BIN)/playground

DESK := examples/trading-desk

run: build ## checks and decides the examples, then starts the demo service; DEMO="--once --auto-approve" answers by itself
	$(BIN)/agf-validate --policies $(DESK)/policies $(DESK)
	$(BIN)/assent decide --agent $(DESK)/agent.agf.yaml --policies $(DESK)/policies --call $(DESK)/calls.jsonl \
		| sed -E 's/^\{"outcome":"([a-z]+)","message":"(([^"\\]|\\.)*)".*/\1  \2/'
	$(BIN)/assent demo $(DEMO)

setup: ## PostgreSQL, Chromium and npm for the tests, where they are missing
	.ci/setup

test: setup ## all tests
	go test -timeout 30m $(TESTFLAGS) $(PACKAGES)

kills: ## crash tests and load tests of the whole size; .ci/run has them, make test a tenth
	ASSENT_KILLS=220 go test ./internal/crashtest -run TestKill
	ASSENT_LOAD=full go test ./rap -run TestLoad

pairs: ## 200,000 pairs of plans, compared and by brute force; half an hour
	ASSENT_PAIRS=200000 go test ./posture -run TestCompareAgreesWithBruteForce -timeout 6h -v

shell: ## 20,000 command lines, read and run in real shells; a minute
	ASSENT_SHELL_LINES=20000 go test ./resolve/shellfacts -run TestAShellStartsNothingElse -v
	go test -tags traced ./resolve/shellfacts -v # needs strace, and any of bash, dash and zsh

clocks: ## hooks whose clocks are wrong, with a binary built for that; four minutes
	go test -tags clocks ./internal/crashtest -run WrongClock -v

race: ## all tests under the race detector (needs a C compiler)
	$(MAKE) test TESTFLAGS=-race

peers: ## assent against software that others wrote, pinned and fetched from its registries
	internal/peers/run

peers-long: ## the same, against what takes minutes; CI leaves it out
	internal/peers/run --long

fuzz: ## every fuzz target for FUZZTIME (5s)
	.ci/fuzz

cover: ## statement coverage of condition, template and resolve: 100 %
	.ci/cover condition template resolve

lint: ## gofmt, vet and staticcheck
	.ci/lint

bench: ## ratios to the peers and to hand-written Go
	$(MAKE) -C bench bench

generate: ## pages made from code: docs/rules and docs/design/001-semantics.md
	.ci/generate

update: generate ## accept new golden files; read the difference before you commit it
	@for p in $$(git grep -l internal/golden -- '*_test.go' | xargs -n 1 dirname | sort -u); do \
		echo "go test ./$$p -update"; go test ./$$p -update || exit 1; done

ci: ## what continuous integration runs
	.ci/run
