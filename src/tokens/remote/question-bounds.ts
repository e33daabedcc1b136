import type { QuestionBounds } from "../../lib/async/fair-questions.ts";

/** Concurrent questions: as many as there are connections to the server. */
export const AT_ONCE = 16;

export const QUESTION_BOUNDS: QuestionBounds = { atOnce: AT_ONCE, most: 256, mostOfClient: 64 };
