import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { installed, missing, runProgram, startProgram } from "../support/program.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const stack = new AsyncDisposableStack();
let gate: Sallyport;
beforeAll(async () => {
  const backend = stack.use(await startEchoBackend());
  gate = stack.use(await startSallyport({ target: backend.url }));
  await ask(gate, "/public/x");
  await ask(gate, "/public/status/503");
  await ask(gate, "/orders");
  await ask(gate, "/orders", { token: gate.token });
});
afterAll(() => stack.disposeAsync());

const noPromtool = missing("promtool");
describe.skipIf(noPromtool !== undefined)(`promtool check metrics ${noPromtool ?? ""}`, () => {
  it("finds no problems", async () => {
    const { text } = await scrape(gate);
    expect(text).toContain("sallyport_http_requests_total{");
    const checked = await runProgram("promtool", ["check", "metrics"], text);
    expect(checked).toEqual({ code: 0, out: "", err: "" });
  });
});

const noPrometheus = missing("prometheus");
describe.skipIf(noPrometheus !== undefined)(`Prometheus ${noPrometheus ?? ""}`, () => {
  it("scrapes the metrics, and returns the counts in queries", async () => {
    await using directory = await temporaryDirectory();
    const config = await directory.write(
      "prometheus.yml",
      JSON.stringify({
        global: { scrape_interval: "1s", scrape_timeout: "1s" },
        scrape_configs: [
          {
            job_name: "sallyport",
            static_configs: [{ targets: [`127.0.0.1:${gate.adminPort}`] }],
          },
        ],
      }),
    );
    expect(installed("prometheus")).toBeDefined();
    const port = await freePort();
    await using prometheus = startProgram("prometheus", [
      `--config.file=${config}`,
      `--storage.tsdb.path=${directory.path}/tsdb`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=warn",
    ]);

    const value = async (query: string): Promise<string | undefined> => {
      if (prometheus.exited()) throw new Error(prometheus.output());
      const path = `/api/v1/query?query=${encodeURIComponent(query)}`;
      const answer = await ask({ port }, path).catch(() => undefined);
      return answer?.status === 200 ? valueIn(JSON.parse(answer.body)) : undefined;
    };
    const answered = 'sum(sallyport_http_requests_total{route="everything",code=~"2..|401"})';
    await until(async () => (await value(answered)) === "2", 20_000);
    expect(await value('up{job="sallyport"}')).toBe("1");
    expect(await value('sallyport_http_requests_total{route="public",code="503"}')).toBe("1");
    const quantile = "sum by (le) (sallyport_http_request_duration_seconds_bucket)";
    expect(Number(await value(`histogram_quantile(0.99, ${quantile})`))).toBeGreaterThan(0);
    expect(await value("sallyport_tls_certificate_not_after_timestamp_seconds > time()")).toMatch(
      /^\d+/,
    );
  });
});

/** Returns the first sample of an instant query. */
function valueIn(answer: unknown): string | undefined {
  const { data } = answer as { data: { result: { value: [number, string] }[] } };
  return data.result[0]?.value[1];
}
