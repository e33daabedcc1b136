import type { Running } from "../peers/peer.ts";
import { ask } from "./ask.ts";

/** Returns the value of one series on Sallyport's `/metrics`, such as `sallyport_token_cache_entries`. */
export async function metric({ adminPort = 0 }: Running, series: string): Promise<number> {
  const { body } = await ask({ port: adminPort, ca: undefined, path: "/metrics" });
  const line = body.split("\n").find((line) => line.startsWith(`${series} `));
  if (line === undefined) throw new Error(`there is no metric ${series}`);
  return Number(line.slice(series.length + 1));
}
