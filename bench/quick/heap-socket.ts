import { connect } from "node:net";
import { text } from "node:stream/consumers";

/** The variable with the path of the socket that `report-heap.ts` answers on. */
export const HEAP_SOCKET = "BENCH_HEAP_SOCKET";

/** Returns the bytes that V8 has allocated in the main thread of a Sallyport process since its start. */
export async function allocatedBytes(path: string): Promise<number> {
  return Number(await text(connect(path)));
}
