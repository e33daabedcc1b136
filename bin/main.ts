// What `node src/main.ts` runs: src/main.ts is a link to this file, for Node goes by the package.json next to the file itself.
// That one says CommonJS, so any Node from 18 reads this file, which must have nothing in it that only TypeScript knows.
if (process.features.typescript) {
  void import("../src/entry.ts");
} else {
  process.stderr.write(
    `sallyport: Node ${process.versions.node} is not supported: it needs 24.18.1 or newer of the 24 line, or 26.5.1 or newer; npm ci brings one\n`,
  );
  process.exitCode = 1;
}
