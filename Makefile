# The README has `make demo`, `make dev` and `make test`.
.PHONY: build demo dev test quick lint bench fuzz storm release sdks

build:
	go build -ldflags "-s -w" -o bin/gatehouse ./cmd/gatehouse

demo: build
	./bin/gatehouse demo

dev: build
	./bin/gatehouse dev

test:
	./scripts/test

quick:
	./scripts/quick

lint:
	./scripts/lint

bench: build
	./bin/gatehouse bench

fuzz:
	./scripts/fuzz

storm:
	./scripts/storm

release:
	./scripts/release

# A wheel, an sdist and an npm tarball in dist/sdks.
sdks:
	./scripts/sdks dist/sdks
