# One static binary on a distroless base, as a user without rights. The build sees no version control, so say:
#   docker build --build-arg COMMIT="$(git rev-parse HEAD)" --build-arg DATE="$(git show -s --format=%cI HEAD)" .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG COMMIT DATE
RUN VERSION=github.com/gatehouse-dev/gatehouse/internal/version && CGO_ENABLED=0 \
    go build -trimpath -ldflags "-s -w -X $VERSION.commit=$COMMIT -X $VERSION.date=$DATE" -o /out/gatehouse ./cmd/gatehouse && mkdir /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/gatehouse /usr/local/bin/gatehouse
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME ["/data"]
ENV GATEHOUSE_DATA=/data GATEHOUSE_LISTEN=0.0.0.0:8080
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/gatehouse"]
CMD ["serve"]
