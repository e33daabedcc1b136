import type { Child } from "../machine/children.ts";
import type { Running } from "./peer.ts";

/** Returns the proxy that runs in a child once `ready` resolves with its ports. If that fails, ends the child. */
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
