import { expect, test } from "vitest";
import { mergeStates } from "../../src/app/threads/thread-state.ts";

const target = (inFlight: number, state: "available" | "ejected") => ({
  upstream: "app",
  target: "http://127.0.0.1:1",
  protocol: "http1",
  state,
  weight: 1,
  inFlight,
  oldestMs: 1_000 * inFlight,
  failures: 0,
});

const issuer = (usable: boolean, keys: number, readAt?: number) => ({
  issuer: "https://login.test",
  usable,
  keys,
  readAt,
});

const outage = (since: number, failedAt: number) => ({
  kind: "http",
  name: "opa",
  since,
  failedAt,
  stale: since === 1,
});

test("the states of all threads are merged: the worst counts", () => {
  const one = {
    targets: [target(2, "available")],
    outages: [outage(1, 5)],
    issuers: [issuer(true, 3, 10)],
  };
  const other = {
    targets: [target(3, "ejected")],
    outages: [outage(2, 6)],
    issuers: [issuer(false, 0)],
  };
  expect(mergeStates([one, other])).toEqual({
    targets: [{ ...target(5, "ejected"), oldestMs: 3_000 }],
    outages: [outage(1, 6)],
    issuers: [issuer(false, 0)],
  });
  expect(mergeStates([])).toEqual({ targets: [], outages: [], issuers: [] });
});
