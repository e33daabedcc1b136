import type { Log } from "../../core/log.ts";

/** What our own keys sign. */
export type KeyPurpose = "tokens" | "assertions";

type Details = Readonly<Record<string, unknown>>;

/** Returns functions that log what happens to our own keys. */
export function keyLog(log: Log, purpose: KeyPurpose = "tokens") {
  return purpose === "tokens" ? logOfTokens(log) : logOfAssertions(log);
}

function logOfTokens(log: Log) {
  return {
    generated: () =>
      log.warn(
        "an ephemeral signing key was generated: its tokens end with this process, and other replicas refuse them",
      ),
    exposed: (details: Details) => log.warn("signing keys can be read by other users", details),
    loaded: (details: Details) => log.info("the signing keys were loaded", details),
    unusable: (details: Details) =>
      log.error("the signing keys cannot be used: the old keys stay in use", details),
    another: (details: Details) => log.info("another key signs now", details),
    none: (details: Details) => log.error("no key signs at this time: nobody can log in", details),
  };
}

function logOfAssertions(log: Log) {
  return {
    generated: () =>
      log.warn(
        "an ephemeral key for assertions was generated: only the key set of this process has it",
      ),
    exposed: (details: Details) =>
      log.warn("keys of assertions can be read by other users", details),
    loaded: (details: Details) => log.info("the keys of assertions were loaded", details),
    unusable: (details: Details) =>
      log.error("the keys of assertions cannot be used: the old keys stay in use", details),
    another: (details: Details) => log.info("another key signs assertions now", details),
    none: (details: Details) =>
      log.error(
        "no key signs assertions at this time: routes with assertion: true answer 503",
        details,
      ),
  };
}
