/** API keys in a file keep the contract of all kinds of stores. */
import { join } from "node:path";
import { describe } from "vitest";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { type KeySource, keyStoreContract } from "../../tokens/key-store-contract.ts";

async function source(): Promise<KeySource> {
  const directory = await temporaryDirectory();
  const write = (text: string) => directory.write("keys.yaml", text);
  return {
    entry: { kind: "file", path: join(directory.path, "keys.yaml") },
    hold: async (keys) => void (await write(JSON.stringify({ keys }))),
    fail: async () => void (await write("keys: [")),
    [Symbol.asyncDispose]: () => directory.close(),
  };
}

describe.each([1, 2])("with %i workers", (workers) => {
  keyStoreContract({
    workers,
    source,
    complaint: {
      msg: "the configuration was not reloaded",
      metric: "sallyport_config_last_reload_successful",
    },
  });
});
