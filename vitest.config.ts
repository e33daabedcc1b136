import { defineConfig } from "vitest/config";

/** Limits in milliseconds. Nothing is tried twice: a test that fails now and then is a fault to be found. */
const common = { pool: "forks", testTimeout: 30_000, hookTimeout: 30_000, retry: 0 } as const;

export default defineConfig({
  test: {
    // One for each of the two cores that the suite must be content with; a flow test starts its own proxy beside it.
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...common,
          name: "fast",
          include: ["test/**/*.test.ts"],
          exclude: ["test/real/**"],
        },
      },
      {
        test: {
          ...common,
          name: "real",
          include: ["test/real/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
