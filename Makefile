# The two commands of the README are `make demo` and `make test`.
.PHONY: build demo test lint bench fuzz storm

build:
	go build -trimpath -ldflags "-s -w" -o bin/gatehouse ./cmd/gatehouse

demo: build
	./bin/gatehouse demo

test:
	./scripts/test

lint:
	./scripts/lint

bench: build
	./bin/gatehouse bench

fuzz:
	./scripts/fuzz

storm:
	./scripts/storm
