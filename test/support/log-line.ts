import type { LogLine, Sallyport } from "./sallyport.ts";
import { until } from "./until.ts";

/** Waits for a log line with these fields, since lines are written a moment after the event. */
export async function logLine(
  gate: Pick<Sallyport, "log">,
  fields: Readonly<Record<string, unknown>>,
): Promise<LogLine> {
  const wanted = Object.entries(fields);
  let found: LogLine | undefined;
  await until(() => {
    found = gate.log().find((line) => wanted.every(([key, value]) => line[key] === value));
    return found !== undefined;
  });
  return found ?? {};
}
