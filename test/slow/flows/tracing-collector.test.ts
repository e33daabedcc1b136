import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { type Collector, spansOf, startCollector } from "../../support/collector.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SAMPLED = `00-${TRACE}-b7ad6b7169203331-01`;

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function start(
  { url }: Pick<Collector, "url">,
  env: Record<string, string> = {},
  workers = 1,
): Promise<Sallyport> {
  return startSallyport({
    target: backend.url,
    config: { server: { workers } },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: "50", ...env },
  });
}

describe("a collector", () => {
  it("that refuses affects no request, and is logged once, without its message", async () => {
    await using refusing = await startCollector((response) => {
      response.writeHead(400, { "content-type": "text/plain" }).end("words of the collector");
    });
    await using gate = await start(refusing, { OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=geheim" });
    for (let i = 0; i < 5; i += 1) {
      expect((await ask(gate, "/public/x")).status).toBe(200);
      await until(() => refusing.deliveries.length > i);
    }
    await logLine(gate, { msg: "spans could not be sent", level: "warn" });
    expect(gate.log().filter(({ msg }) => msg === "spans could not be sent")).toHaveLength(1);
    expect(JSON.stringify(gate.log()) + gate.stderr()).not.toMatch(/geheim|words of the collector/);
  });

  it("that never answers affects no request, and does not delay the exit", async () => {
    await using silent = await startCollector(() => undefined);
    await using gate = await start(silent);
    expect((await ask(gate, "/public/x")).status).toBe(200);
    await until(() => silent.deliveries.length > 0);
    expect((await ask(gate, "/public/x")).status).toBe(200);
    const began = performance.now();
    expect(await gate.stop()).toBe(0);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it.each([1, 2])("gets the last spans of %i workers when Sallyport stops", async (workers) => {
    await using collector = await startCollector();
    await using gate = await start(collector, { OTEL_BSP_SCHEDULE_DELAY: "60000" }, workers);
    await ask(gate, "/public/x", { headers: { traceparent: SAMPLED } });
    await logLine(gate, { trace_id: TRACE });
    expect(collector.spans).toEqual([]);
    expect(await gate.stop()).toBe(0);
    const [server, client] = await spansOf(collector, TRACE, 2);
    expect(client?.parentSpanId).toBe(server?.spanId);
  });
});

describe("a variable with an unsupported value", () => {
  const told = (gate: Sallyport) =>
    gate
      .log()
      .filter(({ msg }) => msg === "an OpenTelemetry variable has an unsupported value")
      .map(({ level, variable, wanted, tracing }) => ({ level, variable, wanted, tracing }));

  it("is logged once, without its value, and its default applies", async () => {
    const wrong = {
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "abc",
      OTEL_BSP_SCHEDULE_DELAY: "-5",
      OTEL_EXPORTER_OTLP_TIMEOUT: "99999999999",
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_CERTIFICATE: "/none/ca.crt",
      OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=geheim,geheim",
      OTEL_RESOURCE_ATTRIBUTES: "geheim",
    };
    await using collector = await startCollector();
    await using gate = await start(collector, wrong, 2);
    await ask(gate, "/public/x", { headers: { traceparent: SAMPLED } });
    await logLine(gate, { trace_id: TRACE });
    expect(await gate.stop()).toBe(0);
    await spansOf(collector, TRACE, 2);
    const names = Object.keys(wrong).filter((name) => name !== "OTEL_TRACES_SAMPLER");
    const loggedNames = told(gate).map(({ variable }) => String(variable));
    expect(loggedNames.toSorted()).toEqual(names.toSorted());
    expect(told(gate)).toContainEqual({
      level: "warn",
      variable: "OTEL_TRACES_SAMPLER_ARG",
      wanted: "a number from 0 to 1",
      tracing: "on",
    });
    expect(JSON.stringify(gate.log())).not.toContain("geheim");
    expect(gate.stderr()).toBe("");
  });

  it("turns tracing off if it is the endpoint", async () => {
    await using gate = await start({ url: "collector of geheim" });
    const got = await ask(gate, "/public/x", { headers: { traceparent: "as it came" } });
    expect(got.body).toContain("as it came");
    expect(await gate.stop()).toBe(0);
    expect(told(gate)).toEqual([
      {
        level: "warn",
        variable: "OTEL_EXPORTER_OTLP_ENDPOINT",
        wanted: "an http or https URL",
        tracing: "off",
      },
    ]);
    expect(gate.log().filter(({ msg }) => msg === "tracing")).toEqual([]);
    expect(JSON.stringify(gate.log()) + gate.stderr()).not.toMatch(/geheim/);
  });
});
