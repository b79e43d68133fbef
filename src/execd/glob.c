/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/glob.h"

#include "base/base.h"

/*
 * A pattern is compiled to a small program whose instructions are the states of a nondeterministic
 * automaton. Matching keeps the set of states that the name so far can lead to (Thompson, 1968).
 */

enum op {
        OP_CHAR,  /* this character */
        OP_ANY,   /* any */
        OP_CLASS, /* one of ranges[a … a + b) */
        OP_OTHER, /* none of them */
        OP_STAR,  /* any, and stay; or continue */
        OP_SPLIT, /* continue at a and at b */
        OP_JUMP,  /* continue at a */
        OP_NEVER, /* nothing */
        OP_MATCH, /* the end */
};

struct inst {
        enum op op;
        uint32_t a, b;
};

struct range {
        uint32_t low, high;
};

struct set {
        uint16_t *states;
        size_t n;
};

/* A byte of a pattern leads to two instructions at most: "," to JUMP and SPLIT. */
#define INSTS_MAX (2 * GLOB_MAX + 8)

struct glob {
        bool negated;
        size_t n;
        struct range *ranges;
        size_t n_ranges;
        struct set now, next;
        uint16_t *todo; /* for following jumps */
        uint32_t *seen; /* the step in which a state was added last */
        uint32_t step;
        struct inst insts[INSTS_MAX];
};

static_assert(INSTS_MAX <= UINT16_MAX, "states are 16 bits");

/* --- characters --- */

/* Bytes that are not UTF-8 differ from all characters. */
static uint32_t next_char(struct str *s)
{
        uint32_t c;
        size_t n = str_utf8_char(*s, &c);

        if (n == 0) {
                c = 0x110000 + (unsigned char) s->p[0];
                n = 1;
        }
        *s = str_skip(*s, n);
        return c;
}

/* --- compilation --- */

struct compiler {
        struct glob *g;
        struct str rest;
        int depth;
};

static uint32_t emit(struct compiler *c, enum op op, uint32_t a, uint32_t b)
{
        ASSERT(c->g->n < INSTS_MAX);
        c->g->insts[c->g->n] = (struct inst){ op, a, b };
        return (uint32_t) c->g->n++;
}

/* A character that may be escaped. */
static int literal(struct compiler *c, uint32_t *ret)
{
        if (c->rest.p[0] == '\\')
                c->rest = str_skip(c->rest, 1);
        if (c->rest.n == 0)
                return -EINVAL;
        *ret = next_char(&c->rest);
        return 0;
}

static bool at(const struct compiler *c, struct str text)
{
        return str_starts_with(c->rest, text);
}

static int class(struct compiler *c)
{
        size_t first = c->g->n_ranges;
        enum op op = OP_CLASS;

        c->rest = str_skip(c->rest, 1);
        if (at(c, STR("!")) || at(c, STR("^"))) {
                op = OP_OTHER;
                c->rest = str_skip(c->rest, 1);
        }
        do {
                struct range r;

                if (c->rest.n == 0 || (at(c, STR("]")) && c->g->n_ranges == first)
                    || literal(c, &r.low) < 0)
                        return -EINVAL;
                r.high = r.low;
                if (at(c, STR("-")) && c->rest.n > 1 && c->rest.p[1] != ']') {
                        c->rest = str_skip(c->rest, 1);
                        if (literal(c, &r.high) < 0)
                                return -EINVAL;
                }
                c->g->ranges[c->g->n_ranges++] = r;
        } while (!at(c, STR("]")));
        c->rest = str_skip(c->rest, 1);
        (void) emit(c, op, (uint32_t) first, (uint32_t) (c->g->n_ranges - first));
        return 0;
}

static int sequence(struct compiler *c, bool start);

static int braces(struct compiler *c, bool start)
{
        uint32_t split, jump = UINT32_MAX, next;

        if (++c->depth > GLOB_DEPTH_MAX)
                return -E2BIG;
        do {
                int r;

                c->rest = str_skip(c->rest, 1); /* the brace, or a comma */
                split = emit(c, OP_SPLIT, (uint32_t) c->g->n + 1, 0);
                r = sequence(c, start);
                if (r < 0)
                        return r;
                jump = emit(c, OP_JUMP, jump, 0); /* chained until the end is known */
                c->g->insts[split].b = (uint32_t) c->g->n;
        } while (at(c, STR(",")));
        if (!at(c, STR("}")))
                return -EINVAL;
        c->rest = str_skip(c->rest, 1);
        c->depth--;
        (void) emit(c, OP_NEVER, 0, 0); /* where the last split leads */
        for (; jump != UINT32_MAX; jump = next) {
                next = c->g->insts[jump].a;
                c->g->insts[jump].a = (uint32_t) c->g->n;
        }
        return 0;
}

static int item(struct compiler *c, bool *start)
{
        bool first = *start;
        uint32_t ch;

        if (first && at(c, STR("**/"))) {
                c->rest = str_skip(c->rest, 3);
                return 0;
        }
        *start = false;
        if (at(c, STR("*"))) {
                while (at(c, STR("*")))
                        c->rest = str_skip(c->rest, 1);
                (void) emit(c, OP_STAR, 0, 0);
                return 0;
        }
        if (at(c, STR("{")))
                return braces(c, first);
        if (at(c, STR("[")))
                return class(c);
        if (at(c, STR("?"))) {
                c->rest = str_skip(c->rest, 1);
                (void) emit(c, OP_ANY, 0, 0);
                return 0;
        }
        if (str_eq(c->rest, STR("/**"))) {
                c->rest = str_skip(c->rest, 3);
                return 0;
        }
        if (literal(c, &ch) < 0)
                return -EINVAL;
        (void) emit(c, ch == '/' ? OP_NEVER : OP_CHAR, ch, 0);
        return 0;
}

static int sequence(struct compiler *c, bool start)
{
        while (c->rest.n > 0) {
                int r;

                if (c->depth > 0 && (at(c, STR(",")) || at(c, STR("}"))))
                        return 0;
                if (at(c, STR("}")))
                        return -EINVAL;
                r = item(c, &start);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* "!(p)q" to "pq". */
static bool take_negation(struct str *pattern, char *storage)
{
        size_t depth = 0, i = 1, n;

        if (!str_starts_with(*pattern, STR("!(")))
                return false;
        for (; i < pattern->n; i++) {
                if (pattern->p[i] == '\\')
                        i++;
                else if (pattern->p[i] == '(')
                        depth++;
                else if (pattern->p[i] == ')' && --depth == 0)
                        break;
        }
        if (i >= pattern->n)
                return false;
        n = i - 2;
        memcpy(storage, pattern->p + 2, n);
        memcpy(storage + n, pattern->p + i + 1, pattern->n - i - 1);
        *pattern = str_of(storage, pattern->n - 3);
        return true;
}

int glob_new(struct str pattern, struct glob **ret)
{
        char storage[GLOB_MAX];
        struct glob *g;
        struct compiler c;
        int r;

        if (pattern.n > GLOB_MAX)
                return -E2BIG;
        g = xnew(struct glob);
        g->negated = take_negation(&pattern, storage);
        g->ranges = xcalloc(pattern.n + 1, sizeof(*g->ranges));
        c = (struct compiler){ .g = g, .rest = pattern };
        r = sequence(&c, /* start= */ true);
        if (r < 0) {
                glob_free(g);
                return r;
        }
        (void) emit(&c, OP_MATCH, 0, 0);
        g->now.states = xcalloc(g->n, sizeof(uint16_t));
        g->next.states = xcalloc(g->n, sizeof(uint16_t));
        g->todo = xcalloc(g->n + 1, sizeof(uint16_t));
        g->seen = xcalloc(g->n, sizeof(uint32_t));
        *ret = g;
        return 0;
}

void glob_free(struct glob *g)
{
        if (!g)
                return;
        free(g->ranges);
        free(g->now.states);
        free(g->next.states);
        free(g->todo);
        free(g->seen);
        free(g);
}

/* --- matching --- */

static void push_state(struct glob *g, uint32_t state, size_t *n)
{
        if (g->seen[state] == g->step)
                return;
        g->seen[state] = g->step;
        g->todo[(*n)++] = (uint16_t) state;
}

/* Adds a state and all it leads to without a character. */
static void add(struct glob *g, struct set *s, uint32_t state)
{
        size_t n = 0;

        push_state(g, state, &n);
        while (n > 0) {
                uint16_t i = g->todo[--n];
                const struct inst *in = &g->insts[i];

                if (in->op == OP_SPLIT || in->op == OP_JUMP)
                        push_state(g, in->a, &n);
                if (in->op == OP_SPLIT)
                        push_state(g, in->b, &n);
                if (in->op == OP_STAR)
                        push_state(g, i + 1U, &n);
                if (in->op != OP_SPLIT && in->op != OP_JUMP)
                        s->states[s->n++] = i;
        }
}

static bool takes(const struct glob *g, const struct inst *in, uint32_t c)
{
        if (in->op != OP_CLASS && in->op != OP_OTHER)
                return in->op == OP_ANY || in->op == OP_STAR || (in->op == OP_CHAR && in->a == c);
        for (uint32_t i = in->a; i < in->a + in->b; i++)
                if (c >= g->ranges[i].low && c <= g->ranges[i].high)
                        return in->op == OP_CLASS;
        return in->op == OP_OTHER;
}

static void begin_step(struct glob *g, struct set *s)
{
        s->n = 0;
        if (++g->step == 0) { /* after 2^32 of them */
                memset(g->seen, 0, g->n * sizeof(*g->seen));
                g->step = 1;
        }
}

bool glob_matches(struct glob *g, struct str name)
{
        struct set spare;

        begin_step(g, &g->now);
        add(g, &g->now, 0);
        while (name.n > 0 && g->now.n > 0) {
                uint32_t c = next_char(&name);

                begin_step(g, &g->next);
                for (size_t i = 0; i < g->now.n; i++) {
                        uint16_t state = g->now.states[i];

                        if (takes(g, &g->insts[state], c))
                                add(g, &g->next,
                                    g->insts[state].op == OP_STAR ? state : state + 1U);
                }
                spare = g->now;
                g->now = g->next;
                g->next = spare;
        }
        for (size_t i = 0; i < g->now.n; i++)
                if (g->insts[g->now.states[i]].op == OP_MATCH)
                        return !g->negated;
        return g->negated;
}
