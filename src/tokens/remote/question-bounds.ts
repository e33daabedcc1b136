import type { QuestionBounds } from "../../lib/async/fair-questions.ts";

/** Maximum number of concurrent requests to one server, and of connections to it. */
export const AT_ONCE = 16;

export const QUESTION_BOUNDS: QuestionBounds = { atOnce: AT_ONCE, most: 256, mostOfClient: 64 };
