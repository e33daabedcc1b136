/** The application behind Sallyport in these tests. It logs when it is told to stop, and answers what runs before it ends. */
import { createServer } from "node:http";

const log = (msg: string): void =>
  console.log(JSON.stringify({ time: new Date().toISOString(), msg }));

const server = createServer((request, response) => {
  request.resume();
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const answer = (): unknown => response.end(JSON.stringify({ path: request.url }));
  if (pathname !== "/slow") return void answer();
  log("slow request");
  setTimeout(answer, Number(searchParams.get("seconds")) * 1000);
});
server.listen(8080, "127.0.0.1", () => log("listening"));
process.on("SIGTERM", () => {
  log("told to stop");
  server.close(() => log("ended"));
});
