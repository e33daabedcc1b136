import { expect, it } from "vitest";
import { warnUnknownClients } from "../../src/app/client-warnings.ts";
import { recordedLog } from "../support/recorded-log.ts";

it("a trusted proxy that names no client is logged once an hour, without the header's value", () => {
  const log = recordedLog();
  let now = 0;
  const tell = warnUnknownClients({ log, clock: { now: () => 0, monotonic: () => now } });
  tell("10.0.0.1", undefined);
  tell("10.0.0.2", "secret");
  now = 3_599_999;
  tell("10.0.0.1", undefined);
  now = 3_600_000;
  tell("10.0.0.2", "secret");
  tell("10.0.0.1", undefined);
  expect(log.lines.map(({ level, fields }) => [level, fields])).toEqual([
    ["warn", { proxy: "10.0.0.1", sent: false }],
    ["warn", { proxy: "10.0.0.2", sent: true }],
  ]);
});
