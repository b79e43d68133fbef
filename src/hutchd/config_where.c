/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config_where.h"

#include "base/base.h"
#include "base/secret.h"

/* --- form --- */

static unsigned line_of(const yaml_mark_t *m)
{
        return (unsigned) m->line + 1;
}

static int syntax_error(const yaml_parser_t *p, const char *name, struct err *e)
{
        const char *what = p->problem ? p->problem : "not YAML";

        if (p->error == YAML_MEMORY_ERROR)
                return err_set(e, ERR_INTERNAL, "%s: out of memory", name);
        /* A byte that is no UTF-8 has no mark, only an offset. */
        if (p->error == YAML_READER_ERROR)
                return err_set(e, ERR_INVALID, "%s: %s at byte %zu", name, what,
                               p->problem_offset + 1);
        return err_set(e, ERR_INVALID, "%s:%u: %s%s%s", name, line_of(&p->problem_mark), what,
                       p->context ? " " : "", p->context ? p->context : "");
}

static const char *check_scalar(const yaml_node_t *node)
{
        size_t n = node->data.scalar.length;

        if (n > CONFIG_VALUE_MAX)
                return "a value longer than 4096 bytes";
        return memchr(node->data.scalar.value, '\0', n) ? "a value with a NUL in it" : NULL;
}

static const char *check_mapping(yaml_document_t *d, const yaml_node_t *node)
{
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start;

        for (; pair < node->data.mapping.pairs.top; pair++)
                if (yaml_document_get_node(d, pair->key)->type != YAML_SCALAR_NODE)
                        return "a key that is no plain text";
        return NULL;
}

/* All nodes are in one array, so a deep text needs no deep stack. */
static int check_nodes(yaml_document_t *d, const char *name, struct err *e)
{
        const yaml_node_t *node = d->nodes.start;

        for (; node < d->nodes.top; node++) {
                const char *wrong = NULL;

                if (node->type == YAML_SCALAR_NODE)
                        wrong = check_scalar(node);
                else if (node->type == YAML_MAPPING_NODE)
                        wrong = check_mapping(d, node);
                if (wrong)
                        return err_set(e, ERR_INVALID, "%s:%u: %s", name,
                                       line_of(&node->start_mark), wrong);
        }
        return 0;
}

static void wipe_nodes(yaml_document_t *d)
{
        for (yaml_node_t *node = d->nodes.start; node < d->nodes.top; node++)
                if (node->type == YAML_SCALAR_NODE)
                        wipe(node->data.scalar.value, node->data.scalar.length);
}

/* --- documents --- */

/* Another document behind ours would be ignored: whoever wrote it believes that it counts. */
static int check_end(yaml_parser_t *p, const char *name, struct err *e)
{
        yaml_document_t more;
        yaml_node_t *root;
        unsigned line;

        if (!yaml_parser_load(p, &more))
                return syntax_error(p, name, e);
        root = yaml_document_get_root_node(&more);
        line = root ? line_of(&root->start_mark) : 0;
        wipe_nodes(&more);
        yaml_document_delete(&more);
        return line > 0 ? err_set(e, ERR_INVALID, "%s:%u: a second document; one is expected", name,
                                  line)
                        : 0;
}

int config_where_open(struct config_where *w, struct str text, const char *name, struct err *e)
{
        yaml_parser_t p;
        int r;

        if (!yaml_parser_initialize(&p))
                return err_set(e, ERR_INTERNAL, "%s: out of memory", name);
        yaml_parser_set_input_string(&p, (const unsigned char *) text.p, text.n);
        if (!yaml_parser_load(&p, &w->_document)) {
                r = syntax_error(&p, name, e);
                yaml_parser_delete(&p);
                return r;
        }
        r = yaml_document_get_root_node(&w->_document) ? check_end(&p, name, e) : 0;
        if (r == 0)
                r = check_nodes(&w->_document, name, e);
        yaml_parser_delete(&p);
        if (r < 0)
                config_where_close(w);
        return r;
}

void config_where_close(struct config_where *w)
{
        wipe_nodes(&w->_document);
        yaml_document_delete(&w->_document);
}

/* "---" alone is a document, of one value that is nothing. */
bool config_where_empty(struct config_where *w)
{
        const yaml_node_t *root = yaml_document_get_root_node(&w->_document);

        return !root || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0);
}

/* --- looking up --- */

static bool scalar_is(const yaml_node_t *node, struct str text)
{
        return node && node->type == YAML_SCALAR_NODE
               && str_eq(text,
                         str_of((const char *) node->data.scalar.value, node->data.scalar.length));
}

/* The last of several equal ones: that is the one people must look at. */
static yaml_node_t *member(yaml_document_t *d, const yaml_node_t *in, struct str key,
                           unsigned *ret_line)
{
        yaml_node_t *found = NULL;

        if (in->type != YAML_MAPPING_NODE)
                return NULL;
        for (const yaml_node_pair_t *p = in->data.mapping.pairs.start;
             p < in->data.mapping.pairs.top; p++) {
                const yaml_node_t *k = yaml_document_get_node(d, p->key);

                if (scalar_is(k, key)) {
                        *ret_line = line_of(&k->start_mark);
                        found = yaml_document_get_node(d, p->value);
                }
        }
        return found;
}

static yaml_node_t *entry(yaml_document_t *d, const yaml_node_t *in, uint64_t index,
                          unsigned *ret_line)
{
        yaml_node_t *found = NULL;

        if (in->type == YAML_SEQUENCE_NODE
            && index < (uint64_t) (in->data.sequence.items.top - in->data.sequence.items.start))
                found = yaml_document_get_node(d, in->data.sequence.items.start[index]);
        if (found)
                *ret_line = line_of(&found->start_mark);
        return found;
}

/* "keys[1]": a member, and then an entry of it. */
static yaml_node_t *step(yaml_document_t *d, yaml_node_t *in, struct str part, unsigned *ret_line)
{
        ssize_t bracket = str_find(part, '[');
        struct str name = bracket < 0 ? part : str_of(part.p, (size_t) bracket), number;
        uint64_t index;

        in = member(d, in, name, ret_line);
        if (!in || bracket < 0)
                return in;
        number = str_skip(part, (size_t) bracket + 1);
        number.n -= number.n > 0; /* the closing bracket */
        return parse_u64(number, &index) < 0 ? NULL : entry(d, in, index, ret_line);
}

unsigned config_where_line(struct config_where *w, struct str path, struct str key)
{
        yaml_node_t *node = yaml_document_get_root_node(&w->_document);
        unsigned line = node ? line_of(&node->start_mark) : 1;
        struct str part;

        if (path.n == 0)
                path = STR_NULL;
        while (node && path.p && str_split(&path, '.', &part))
                node = step(&w->_document, node, part, &line);
        if (node && key.p)
                (void) member(&w->_document, node, key, &line);
        return line;
}
