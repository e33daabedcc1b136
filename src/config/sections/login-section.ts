import { z } from "zod";
import { duration, optional, settings, whole } from "../fields.ts";

/** The section `login`. */
const failures = () => whole(1, 1_000_000);

/** The default limit of an address, as a multiple of `attempts`: users behind one gateway share an address. */
const NAMES_BEHIND_AN_ADDRESS = 10;

function throttle() {
  return z
    .strictObject({
      attempts: failures()
        .default(5)
        .describe("Failures of one name from one address that lead to a ban"),
      within: duration().prefault("2m").describe("Period in which failures count"),
      ban: duration().prefault("5m").describe("Length of the ban"),
      address: settings("Limits for one address, or IPv6 /64, over all names", {
        attempts: optional(
          "Failures from one address (IPv6: /64), over all names, that lead to a ban; default: ten times throttle.attempts",
          failures(),
        ),
        within: optional("Period; default: throttle.within", duration()),
        ban: optional("Length of the ban; default: throttle.ban", duration()),
      }),
      account: settings("Limits for one name, over all addresses", {
        attempts: failures()
          .default(100)
          .describe(
            "Failures of one name in a row, after which an unknown address gets three attempts",
          ),
        within: duration().prefault("24h").describe("Time without a failure that resets the count"),
      }),
      global: settings("Limits for all names and addresses together", {
        attempts: failures()
          .default(300)
          .describe("Failures from unknown addresses, over all names"),
        within: duration()
          .prefault("1m")
          .describe("Period; above the limit, attempts are refused for a moment"),
      }),
    })
    .transform(({ address, ...throttle }) => ({
      ...throttle,
      address: {
        attempts: address.attempts ?? throttle.attempts * NAMES_BEHIND_AN_ADDRESS,
        within: address.within ?? throttle.within,
        ban: address.ban ?? throttle.ban,
      },
    }))
    .prefault({})
    .describe("Slows down password guessing");
}

export function loginSection() {
  return settings("Limits of POST /api/authenticate", {
    throttle: throttle(),
    hashing: settings("Resources for checking passwords", {
      concurrency: whole(1, 64).default(2).describe("Threads that hash passwords"),
      queue: whole(0, 100_000).default(32).describe("Logins that may wait for a thread"),
    }),
  });
}
