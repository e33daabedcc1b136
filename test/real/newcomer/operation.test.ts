/** A newcomer's wishes about operation: reload, drain, Prometheus, OpenTelemetry, the log, replicas. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../../docs/markdown.ts";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { startCollector } from "../../support/collector.ts";
import { freePort } from "../../support/dead-ends.ts";
import { missing, startProgram } from "../../support/program.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";
import { inMemory, REDIS_PROGRAMS, startRedisNode } from "../redis-node.ts";
import { blockOf, follow } from "./follow.ts";

it("a reload, one of a faulty file, and a drain that lets a request finish", async () => {
  const followed = await follow("reload-and-stop");
  const token = await followed.login("alice");
  const file = join(followed.deployment, "config.yaml");
  const sound = await readFile(file, "utf8");
  await appendFile(file, "log: { access: errors }\n");
  expect(await followed.sh("sallyport reload")).toMatch(/changed: log\.access|reloaded/);
  await appendFile(file, "routs: []\n");
  await expect(followed.sh("sallyport reload")).rejects.toThrow(/config\.yaml:\d+:\d+: .*routs/);
  expect((await ask(followed, "/orders", { token })).status).toBe(200);
  await writeFile(file, sound);
  await followed.sh("sallyport reload");
  expect(await followed.sh("sallyport status")).toMatch(/ready[^]*reloaded \S+ ago/);

  const running = ask(followed, "/slow?ms=7000", { token });
  await until(
    async () => (await followed.run("curl -sS http://127.0.0.1:9464/readyz")) === "ready\n",
  );
  const drained = followed.sh("sallyport drain");
  await until(async () => (await ask({ port: followed.adminPort }, "/readyz")).status === 503);
  expect((await ask(followed, "/orders", { token })).status).toBe(200);
  expect((await running).status).toBe(200);
  expect(await drained).toBe("drained\n");
  await expect(ask(followed, "/orders", { token })).rejects.toThrow("ECONNREFUSED");
});

const noPrometheus = missing("prometheus", "promtool");
it.skipIf(noPrometheus !== undefined)("Prometheus with the rules", async () => {
  const rules = await readFile(join(ROOT, "deploy/prometheus/sallyport.rules.yaml"), "utf8");
  const followed = await follow("prometheus", {
    filled: { "scrape_interval: 30s": "scrape_interval: 1s" },
    files: { "sallyport.rules.yaml": rules },
  });
  await ask(followed, "/orders");
  expect(await followed.sh("promtool")).toMatch(/SUCCESS[^]*sallyport_http_requests_total/);
  const port = await freePort();
  await using data = await temporaryDirectory();
  await using prometheus = startProgram("prometheus", [
    `--config.file=${join(followed.deployment, "prometheus.yaml")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    `--storage.tsdb.path=${data.path}`,
  ]);
  const get = async (path: string): Promise<string> => {
    if (prometheus.exited()) throw new Error(prometheus.output());
    return ask({ port }, path).then(({ body }) => body, String);
  };
  const up = `/api/v1/query?query=${encodeURIComponent('up{job="sallyport"}')}`;
  await until(async () => /"value":\[[^\]]*"1"\]/.test(await get(up)), 20_000);
  const states = [...(await get("/api/v1/rules")).matchAll(/"health":"(\w+)"/g)];
  expect(states.length).toBeGreaterThan(40);
  expect(states.filter(([, health]) => health === "err")).toEqual([]);
});

it.skipIf(missing("jq") !== undefined)("spans for OpenTelemetry, and a log to search", async () => {
  await using collector = await startCollector();
  const [, variable = "", url = ""] =
    /^Environment=(OTEL_\w+)=(\S+)$/m.exec(blockOf("logs", "[Service]\nEnvironment=OTEL")) ?? [];
  expect(url).toBe("http://127.0.0.1:4318");
  const followed = await follow("logs", { env: { [variable]: collector.url } });
  const token = await followed.login("alice");
  expect((await ask(followed, "/status/503", { token })).status).toBe(503);
  await until(() => collector.spans.some(({ name }) => name.startsWith("GET")), 15_000);
  const line = await followed.proxy.line((each) =>
    each.includes('"status":503') ? each : undefined,
  );
  await writeFile(join(followed.deployment, "journal"), `${followed.proxy.lines.join("\n")}\n`);
  const search = blockOf("logs", "journalctl").replace(/^journalctl [^|]*\|/, "cat journal |");
  expect(await followed.run(search)).toContain('"status": 503');
  const { trace_id: traceId } = JSON.parse(line) as { readonly trace_id: string };
  expect(collector.spans.map((span) => span.traceId)).toContain(traceId);
});

it.skipIf(REDIS_PROGRAMS.length === 0)("two replicas with a state server", async () => {
  const { ca, server } = await testCertificates();
  const password = "of-the-state";
  await using redis = await startRedisNode({
    program: REDIS_PROGRAMS[0] ?? "",
    files: { "tls.crt": server.cert, "tls.key": server.key },
    args: (port, directory) => {
      const tls = { cert: join(directory, "tls.crt"), key: join(directory, "tls.key") };
      const files = ["--tls-cert-file", tls.cert, "--tls-key-file", tls.key];
      const user = ["--user", "sallyport", "on", `>${password}`, "~*", "&*", "+@all"];
      const rest = ["--tls-auth-clients", "no", "--maxmemory-policy", "noeviction", ...user];
      return [...inMemory(0, directory), "--tls-port", String(port), ...files, ...rest];
    },
    client: { username: "sallyport", password, tls: { ca } },
  });
  const substitutes = {
    filled: { "state.example.com:6379": `127.0.0.1:${redis.port}` },
    files: { "state-password": password, "ca.crt": ca },
  };
  const first = await follow("replicas", substitutes);
  const second = await follow("replicas", { ...substitutes, beside: first });
  expect(await first.sh("sallyport doctor")).toMatch(
    /redis: .* answers in[^]*state server +redis +connected/,
  );
  const token = await first.login("alice");
  expect((await ask(second, "/orders", { token })).status).toBe(200);
  expect((await ask(first, "/api/logout", { method: "POST", token })).status).toBe(200);
  await until(async () => (await ask(second, "/orders", { token })).status === 401, 2_000);
});
