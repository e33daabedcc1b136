import { defineConfig, type TestUserConfig } from "vitest/config";

/** Limits in milliseconds. */
const common = {
  pool: "forks",
  // A process and the modules in it serve many files, one after the other: a test keeps nothing in a module, except
  // for the Sallyport of process-sallyport.ts.
  isolate: false,
  setupFiles: ["test/support/same-draws.ts"],
  globalSetup: ["test/support/left-behind.ts", "test/support/made-once.ts"],
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // Whoever changes one thing is not held up by a test of another that fails now and then. flaky.ts names it as a fault.
  retry: 2,
} satisfies TestUserConfig;

export default defineConfig({
  test: {
    // On the two cores that the suite must be content with: tests wait for the proxies that they start, and for time.
    maxWorkers: 3,
    reporters: ["default", "./test/support/flaky.ts"],
    projects: [
      {
        test: {
          ...common,
          name: "fast",
          include: ["test/**/*.test.ts"],
          exclude: ["test/cluster/**", "test/real/**", "test/slow/**"],
        },
      },
      {
        test: {
          ...common,
          // They wait for what takes its seconds on every machine.
          name: "slow",
          include: ["test/slow/**/*.test.ts"],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          ...common,
          name: "real",
          // So few files that sharing a process saves nothing.
          isolate: true,
          include: ["test/real/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          ...common,
          // The only tests that need more than this machine: a cluster, which KUBECONFIG names.
          name: "cluster",
          globalSetup: [...common.globalSetup, "test/cluster/which-cluster.ts"],
          isolate: true,
          include: ["test/cluster/**/*.test.ts"],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          retry: 0,
        },
      },
    ],
  },
});
