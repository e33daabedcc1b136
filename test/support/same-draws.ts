/**
 * Gives fast-check one seed per test process, so that a retried test gets the same values: a fault that one of them
 * finds fails all tries, and is not reported as flaky. Each run has a different seed. fast-check prints it with the
 * failure; FAST_CHECK_SEED sets it. vitest runs this before each test file.
 */
import { randomInt } from "node:crypto";
import fc from "fast-check";

/** The environment variable that holds the seed of this process. */
const SEED = "FAST_CHECK_SEED";

const seed = Number((process.env[SEED] ??= String(randomInt(2 ** 31))));
if (!Number.isInteger(seed)) throw new Error(`${SEED} must be a whole number`);
fc.configureGlobal({ seed });
