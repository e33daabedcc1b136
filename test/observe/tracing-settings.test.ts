import { expect, test } from "vitest";
import { readTracingSettings } from "../../src/observe/tracing/tracing-settings.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

const unsupported = (env: Record<string, string>): string[] =>
  readTracingSettings(env).unsupported.map(({ variable }) => variable);
const settings = (env: Record<string, string>) => readTracingSettings(env).settings;

const DEFAULTS = {
  url: "http://collector:4318/v1/traces",
  sampler: "parentbased_always_on",
  ratio: 1,
  delayMs: 5_000,
  timeoutMs: 10_000,
};

test.each([
  ["http://collector:4318/", "http://collector:4318/v1/traces"],
  [" https://collector/otlp\n", "https://collector/otlp/v1/traces"],
])("spans for %j go to %s", (endpoint, url) => {
  expect(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toEqual({ ...DEFAULTS, url });
});

test("the address for traces is used unchanged, and takes precedence over the general one", () => {
  const own = { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces:1/x" };
  expect(settings(own)?.url).toBe("http://traces:1/x");
  const wrong = { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "traces" };
  expect(settings(wrong)?.url).toBe(DEFAULTS.url);
  expect(unsupported(wrong)).toEqual(["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]);
});

test.each(["collector", "collector:4318", "ftp://collector", "http://", "unix:/x"])(
  "%j is not accepted as an address for tracing",
  (endpoint) => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: "always_on" };
    expect(settings(env)).toBeUndefined();
    expect(unsupported(env)).toEqual(["OTEL_EXPORTER_OTLP_ENDPOINT"]);
  },
);

test("nothing is logged while tracing is off", () => {
  const wrong = { OTEL_TRACES_SAMPLER: "wrong" };
  for (const env of [
    wrong,
    { ...wrong, OTEL_EXPORTER_OTLP_ENDPOINT: " " },
    { ...wrong, ...ENDPOINT, OTEL_SDK_DISABLED: "True" },
    { ...wrong, ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" },
  ]) {
    expect(readTracingSettings(env)).toEqual({ settings: undefined, unsupported: [] });
  }
});

test.each([
  ["OTEL_SDK_DISABLED", "yes"],
  ["OTEL_TRACES_EXPORTER", "zipkin"],
  ["OTEL_TRACES_SAMPLER", "sometimes"],
  ["OTEL_BSP_SCHEDULE_DELAY", "-5"],
  ["OTEL_BSP_SCHEDULE_DELAY", "0"],
  ["OTEL_BSP_SCHEDULE_DELAY", "5s"],
  ["OTEL_BSP_SCHEDULE_DELAY", "99999999999"],
  ["OTEL_EXPORTER_OTLP_TIMEOUT", "-1"],
  ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
  ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"],
  ["OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"],
  ["OTEL_EXPORTER_OTLP_COMPRESSION", "GZIP"],
  ["OTEL_EXPORTER_OTLP_CERTIFICATE", "/none/ca.crt"],
  ["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/none/client.crt"],
  ["OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/none/client.key"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "bad name=x"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "x-api-key"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "x-api-key="],
  ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=1,b=%0d%0a"],
  ["OTEL_RESOURCE_ATTRIBUTES", "a=1,b"],
  ["OTEL_RESOURCE_ATTRIBUTES", "a=1=2"],
  ["OTEL_RESOURCE_ATTRIBUTES", "a=%%%"],
  ["OTEL_RESOURCE_ATTRIBUTES", "=1"],
])("%s is ignored as %j, and the default applies", (variable, value) => {
  const env = { ...ENDPOINT, [variable]: value };
  expect(unsupported(env)).toEqual([variable]);
  expect(settings(env)).toEqual(DEFAULTS);
});

test.each(["abc", "-0.1", "1.1"])("%j is not a valid ratio", (ratio) => {
  const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG: ratio };
  const byRatio = { ...env, OTEL_TRACES_SAMPLER: "traceidratio" };
  expect(unsupported(byRatio)).toEqual(["OTEL_TRACES_SAMPLER_ARG"]);
  expect(settings(byRatio)?.ratio).toBe(1);
  // It is not read.
  expect(unsupported(env)).toEqual([]);
});

test("valid values apply without a log entry", async () => {
  await using directory = await temporaryDirectory();
  const file = await directory.write("ca.crt", "");
  const env = {
    ...ENDPOINT,
    OTEL_SDK_DISABLED: "false",
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_TRACES_SAMPLER: "ParentBased_TraceIdRatio",
    OTEL_TRACES_SAMPLER_ARG: "0.01",
    OTEL_BSP_SCHEDULE_DELAY: "50",
    OTEL_EXPORTER_OTLP_TIMEOUT: "3000",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_CERTIFICATE: file,
    OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=geheim, authorization=Basic eA==,",
    OTEL_RESOURCE_ATTRIBUTES: "a=1, b=x%3Dy,c=",
    OTEL_SERVICE_NAME: "orders-gate",
  };
  expect(readTracingSettings(env)).toEqual({
    settings: {
      url: DEFAULTS.url,
      sampler: "parentbased_traceidratio",
      ratio: 0.01,
      delayMs: 50,
      timeoutMs: 3_000,
    },
    unsupported: [],
  });
  const blank = Object.fromEntries(Object.keys(env).map((name) => [name, " "]));
  expect(readTracingSettings({ ...blank, ...ENDPOINT })).toEqual({
    settings: DEFAULTS,
    unsupported: [],
  });
});
