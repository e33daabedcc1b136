/** HTTP/2 conformance of the main listener, tested with h2spec. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startEchoBackend } from "../support/echo-backend.ts";
import { missing, runProgram } from "../support/program.ts";
import { startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/**
 * Section and number of each case that fails, with or without Sallyport. Any other failure is a fault; docs/reference/http.md
 * says how many there are.
 */
const FAILING = [
  // nghttp2 ignores frames on closed streams, as RFC 9113 §5.1 allows.
  ...["5.1: 8", "5.1: 9", "5.1: 11", "5.1: 12", "5.1.1: 2"],
  // It ignores PRIORITY, which RFC 9113 §5.3.2 deprecates.
  ...["5.3.1: 2", "6.3: 1"],
  // An unsolicited PING with ACK, and a window above 2^31-1, end the connection, not the stream.
  ...["6.7: 2", "6.9.1: 3"],
];
/** A wrong preface gets an HTTP/1.1 response, since the same port speaks HTTP/1.1. */
const FAILING_IN_THE_CLEAR = ["3.5: 2"];
const LIMIT_MS = 120_000;

/** Returns the failed cases of a JUnit report, each as section and number. */
function failuresOf(report: string): string[] {
  const failed: string[] = [];
  for (const [, section = "", cases = ""] of report.matchAll(
    /<testsuite [^>]*package="([^"]*)"[^>]*>(.*?)<\/testsuite>/gs,
  )) {
    const all = [...cases.matchAll(/<testcase [^>]*>(.*?)<\/testcase>/gs)];
    for (const [index, [, content = ""]] of all.entries()) {
      if (/<(?:failure|error)/.test(content)) {
        failed.push(`${section.replace(/^http2\//, "")}: ${index + 1}`);
      }
    }
  }
  return failed.toSorted();
}

const noTool = missing("h2spec");
describe.skipIf(noTool !== undefined)(`h2spec ${noTool ?? ""}`, () => {
  it.each([
    ["over TLS", {}, ["-t", "-k"], FAILING],
    ["in the clear", { tls: "off" }, [], [...FAILING_IN_THE_CLEAR, ...FAILING]],
  ])(
    "%s: only the documented cases fail",
    async (_name, server, flags, failing) => {
      await using backend = await startEchoBackend();
      const config = { server: { http2: true, ...server } };
      await using gate = await startSallyport({ target: backend.url, config });
      await using directory = await temporaryDirectory();
      const report = join(directory.path, "report.xml");
      const where = ["-h", "127.0.0.1", "-p", String(gate.port), "-P", "/public/x"];
      const run = await runProgram(
        "h2spec",
        [...flags, ...where, "-o", "2", "-j", report],
        "",
        LIMIT_MS,
      );
      expect(run.out).toMatch(/145 tests/);
      expect(failuresOf(await readFile(report, "utf8")), run.out).toEqual(failing.toSorted());
    },
    LIMIT_MS + 30_000,
  );
});
