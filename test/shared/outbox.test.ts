import { expect, it } from "vitest";
import type { Revocation } from "../../src/core/revocation.ts";
import { Outbox } from "../../src/shared/outbox.ts";
import { keysFor } from "../../src/shared/wire.ts";

const revocations = (count: number): Revocation[] =>
  Array.from(
    { length: count },
    (_, index) => ({ kind: "token", name: String(index), until: 1 }) as const,
  );

it("says of revocations that it drops, while the server is away, that they are not stored", async () => {
  const outbox = new Outbox(keysFor("test"), "own");
  const first = outbox.addRevocations(revocations(2));
  void outbox.addRevocations(revocations(250_000));
  await expect(first).resolves.toBe(false);
});
