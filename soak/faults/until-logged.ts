import { until } from "../../test/support/until.ts";
import type { LogBook } from "../accounts/log-book.ts";

/** Longer than the five seconds after which a change is found even if the system does not report it. */
const FOUND_MS = 15_000;

/** Performs an action, and waits for the log line that shows that it was noticed. */
export async function untilLogged(
  book: LogBook,
  message: string,
  act: () => Promise<void>,
): Promise<void> {
  const before = book.messages.of(message);
  await act();
  await until(() => book.messages.of(message) > before, FOUND_MS);
}
