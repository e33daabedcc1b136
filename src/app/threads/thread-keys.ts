import type { Clock } from "../../lib/clock.ts";
import type { KeyRing } from "../../tokens/keys/key-ring.ts";
import { type OwnKeys, ReplaceableKeys } from "../../tokens/keys/own-keys.ts";

type Name = "keys" | "assertionKeys";
const NAMES: readonly Name[] = ["keys", "assertionKeys"];

/** All of Sallyport's own keys, in the form in which they are posted to a thread. */
export type KeyRings = Readonly<Record<Name, KeyRing>>;

export function ringsOf({ keys, assertionKeys }: Readonly<Record<Name, OwnKeys>>): KeyRings {
  return { keys: keys.ring, assertionKeys: assertionKeys.ring };
}

/**
 * Calls the listener whenever a key ring is replaced.
 *
 * @returns a function that ends the subscription.
 */
export function onKeyChange(
  all: Readonly<Record<Name, OwnKeys>>,
  listener: (name: Name, ring: KeyRing) => void,
): () => void {
  const ends = NAMES.map((name) => all[name].onChange(() => listener(name, all[name].ring)));
  return () => {
    for (const end of ends) end();
  };
}

/** Sallyport's own keys in a thread, which receives them from the main thread. */
export type ThreadKeys = Readonly<Record<Name, ReplaceableKeys>>;

export function threadKeys({ keys, assertionKeys }: KeyRings, clock: Clock): ThreadKeys {
  return {
    keys: new ReplaceableKeys(keys, clock),
    assertionKeys: new ReplaceableKeys(assertionKeys, clock),
  };
}
