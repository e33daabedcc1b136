/** The connection limits of the shipped configurations fit the memory of their containers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { parseSize } from "../../src/lib/text/duration.ts";
import { ROOT } from "../docs/markdown.ts";
import { documentedFile } from "./documents.ts";

/** In bytes, from docs/performance.md and bench/RESULTS.md: a process after some work, and additional costs. */
const WORKED = 175e6;
const CONNECTION = 56e3;
/** Data that waits for clients, and the garbage that a flood of it leaves. */
const BUFFERED_FACTOR = 2;
const PASSWORDS = 2 * 19 * 1024 ** 2;

const Configuration = z.object({
  server: z.object({ limits: z.object({ connections: z.number(), bufferedBytes: z.string() }) }),
});

const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
/** Parses `config.yaml` from a ConfigMap, the first document of a file. */
function inConfigMap(text: string): unknown {
  const [first = ""] = text.split("\n---\n");
  return parse(
    z.object({ data: z.record(z.string(), z.string()) }).parse(parse(first)).data["config.yaml"] ??
      "",
  );
}

const patched = documentedFile("kubernetes/README.md", "patched/sallyport-config.yaml");
const sidecar = read("deploy/kubernetes/sidecar/pod.yaml");
const values = read("deploy/helm/sallyport/values.yaml");
const migration = "docs/migration/kube-rbac-proxy/after";

test.each<[where: string, configuration: unknown, container: string]>([
  [
    "the plain manifests",
    inConfigMap(read("deploy/kubernetes/plain/config-map.yaml")),
    read("deploy/kubernetes/plain/deployment.yaml"),
  ],
  ["the component", parse(read("deploy/kubernetes/sidecar/config.yaml")), sidecar],
  [
    "the shared service",
    parse(read("deploy/kubernetes/service/config.yaml")),
    read("deploy/kubernetes/service/deployment.yaml"),
  ],
  ["the component with another configuration", inConfigMap(patched), sidecar],
  ["the chart", z.object({ config: z.unknown() }).parse(parse(values)).config, values],
  [
    "the migration from kube-rbac-proxy",
    parse(read(`${migration}/config.yaml`)),
    read(`${migration}/deployment.yaml`),
  ],
])("of %s", (_where, configuration, container) => {
  const { connections, bufferedBytes } = Configuration.parse(configuration).server.limits;
  const buffered = parseSize(bufferedBytes) ?? NaN;
  const mebibytes = /^ *(?:resources: .*)?limits: \{ memory: (\d+)Mi \}/m.exec(container)?.[1];
  expect(Number(mebibytes) * 1024 ** 2).toBeGreaterThan(
    WORKED + connections * CONNECTION + BUFFERED_FACTOR * buffered + PASSWORDS,
  );
});
