/* SPDX-License-Identifier: MIT */
/* The tree of an expression. */
#ifndef GPEMU_RUNNER_SPEC_RUN_EXPR_TREE_H
#define GPEMU_RUNNER_SPEC_RUN_EXPR_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct expr_select {
	char *axis;  /* NULL: any axis that has the label */
	char *label; /* "*": all of the axis */
	size_t offset;
};

struct expr_ref {
	char *name;
	size_t offset; /* in the text, from 0 */
	struct expr_select *selects;
	size_t n_selects;
};

enum { EXPR_SIDES = 12 };

/* arbitrary: more than any readable expression has */
enum { EXPR_MAX_ARGS = 16 };

enum node_kind { NODE_NUMBER, NODE_REF, NODE_NEGATE, NODE_BINARY, NODE_CALL };

struct function {
	const char *name;
	double (*one)(double);			 /* of one value, or NULL: */
	double (*fold)(double so_far, double v); /* of several */
	bool mean;
};

struct node {
	enum node_kind kind;
	double number;
	char op;
	const struct function *function;
	struct expr_ref ref;
	struct node *args[EXPR_MAX_ARGS];
	size_t n_args;
};

struct expr {
	size_t n_sides;
	struct node *side[EXPR_SIDES];
	const char *op[EXPR_SIDES];
	double tolerance;
	bool relative;
};

#endif
