# The README has `make demo`, `make dev` and `make test`.
.PHONY: build quickbuild demo dev test quick lint generate bench fuzz storm planted release sdks

build:
	go build -ldflags "-s -w" -o bin/gatehouse ./cmd/gatehouse

# For a first look: no inlining, no debugging data, and few garbage collections of the
# compiler take a third off the time.
quickbuild:
	@echo "Compiling. The first time takes about a minute."
	@GOGC=400 go build -gcflags "all=-l -dwarf=false" -ldflags "-s -w" -o bin/gatehouse ./cmd/gatehouse

demo: quickbuild
	./bin/gatehouse demo

dev: quickbuild
	./bin/gatehouse dev

test:
	./scripts/test

quick:
	./scripts/quick

lint:
	./scripts/lint

# Writes every generated file again.
generate:
	./scripts/generate

bench: build
	./bin/gatehouse bench

fuzz:
	./scripts/fuzz

storm:
	./scripts/storm

# Plants each bug of a list and sees its test go red: about an hour.
planted:
	./scripts/planted

release:
	./scripts/release

# A wheel, an sdist and an npm tarball in dist-sdks; `make release` deletes what is in dist.
sdks:
	./scripts/sdks dist-sdks
