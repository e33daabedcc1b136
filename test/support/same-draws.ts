/**
 * Gives fast-check one seed for each test process, so that a test that is tried again meets the same draws: a fault that one
 * of them finds fails all tries, and is not called flaky. Each run has another seed. fast-check prints it with what failed;
 * FAST_CHECK_SEED repeats it. vitest runs this before each test file.
 */
import { randomInt } from "node:crypto";
import fc from "fast-check";

/** The environment variable that holds the seed of this process. */
const SEED = "FAST_CHECK_SEED";

const seed = Number((process.env[SEED] ??= String(randomInt(2 ** 31))));
if (!Number.isInteger(seed)) throw new Error(`${SEED} must be a whole number`);
fc.configureGlobal({ seed });
