# syntax=docker/dockerfile:1

# The image: the bundle of `npm run build`, Node, and no shell.
#
#   docker build --tag sallyport:0.1.0 \
#     --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#
# For other base images, by digest for a reproducible build, or from a mirror:
#
#   --build-arg BUILD_IMAGE=node:26-trixie-slim@sha256:… --build-arg RUNTIME_IMAGE=…
#
# Behind a proxy that inspects TLS, give its authority to the build; it gets into no image:
#
#   --secret id=ca,src=corporate-ca.pem
#
# The runtime image must have Node >= 26.5.1 (or 24.18.1) at /nodejs/bin/node.
# Run it with a read-only root; it writes nothing. Add `--user` if uid 65532 cannot read your files, such as keys:
#
#   docker run --read-only --user "$(id -u):$(id -g)" --cap-drop ALL --security-opt no-new-privileges \
#     --volume "$PWD/deployment:/etc/sallyport:ro" --publish 8443:8443 sallyport:0.1.0
#
# test/real/image-content.test.ts runs what the last stage copies.

ARG BUILD_IMAGE=docker.io/library/node:26-trixie-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs26-debian13:nonroot

# No install scripts: the only one fetches Node, which is here already.
FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
COPY tools ./tools
RUN --mount=type=secret,id=ca \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi; \
    npm ci --ignore-scripts --no-audit --no-fund
# The licence is that of code whose files refer to it: build/licences.ts.
COPY LICENSE rolldown.config.ts ./
COPY build ./build
COPY src ./src
RUN npm run build

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sallyport" \
      org.opencontainers.image.description="An authenticating reverse-proxy sidecar: log in, verify, forward, measure" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
COPY --from=build /src/dist ./dist
COPY LICENSE ./
# What messages point to.
COPY docs ./docs
# For `serve` and the health check.
ENV SALLYPORT_CONFIG=/etc/sallyport/config.yaml
# The C library returns freed memory to the system at once. By default it raises both thresholds to the size of the largest
# buffer that was freed. Four busy workers took 283 MB without this and 249 MB with it, at the same cost of a request.
ENV MALLOC_MMAP_THRESHOLD_=131072
ENV MALLOC_TRIM_THRESHOLD_=131072
USER 65532:65532
EXPOSE 8443 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["/nodejs/bin/node", "--disable-sigusr1", "/app/dist/main.js", "healthcheck"]
# A young generation of at most 8 MiB: 38 MB less resident memory under load, at the same cost of a request. It begins with 2 MiB
# instead of one, since half of the start's collections took a twentieth of its time.
# V8 must not shrink the heap when idle: it would drop the shapes of unused objects, and the code compiled for them. The
# first seconds after a pause then cost 50 % more, everything after that 10 %.
# Two threads of V8 for marking and compiling instead of four: where all share one core, each takes a slice of 4 ms from the
# thread that serves. For the same reason, one thread at most marks beside it.
# Nothing compiles text (`eval`, `new Function`). No signal opens the debugger, not even before Sallyport's first line runs.
ENTRYPOINT ["/nodejs/bin/node", "--min-semi-space-size=2", "--max-semi-space-size=8", "--no-memory-reducer", "--v8-pool-size=2", "--concurrent-marking-max-worker-num=1", "--disallow-code-generation-from-strings", "--disable-sigusr1", "/app/dist/main.js"]
CMD ["serve"]
