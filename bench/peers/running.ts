import type { Child } from "../machine/children.ts";
import type { Running } from "./peer.ts";

/** The proxy that a child has become once `ready` has told its ports; when that fails, the child is ended. */
export async function running(
  child: Child,
  ready: Promise<{ readonly port: number; readonly adminPort?: number }>,
): Promise<Running> {
  try {
    return { ...(await ready), pid: child.pid, [Symbol.asyncDispose]: child.stop };
  } catch (error) {
    await child.stop();
    throw error;
  }
}
