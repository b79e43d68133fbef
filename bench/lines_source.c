/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes BYTES of lines that are WIDTH long with their ends, in pieces as large as a pipe. It costs next to
 * nothing, so what transports its output is what is measured.
 *
 *         lines_source BYTES WIDTH
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE 65536

/* Writes as much of the piece as the pipe takes at once, so that pieces go on where they stopped. */
static size_t write_some(const char *piece, size_t n)
{
        ssize_t r = write(STDOUT_FILENO, piece, n);

        if (r <= 0)
                exit(1);
        return (size_t) r;
}

int main(int argc, char **argv)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
        size_t left = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
        size_t width = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
        char *text;

        if (width < 1 || width > PIECE) {
                fprintf(stderr, "usage: lines_source BYTES WIDTH\n");
                return 2;
        }
        /* A piece may start anywhere in a line. */
        text = malloc(PIECE + width);
        if (!text)
                return 1;
        for (size_t i = 0; i < PIECE + width; i++)
                text[i] = letters[i % width % 26];
        for (size_t i = width - 1; i < PIECE + width; i += width)
                text[i] = '\n';
        for (size_t at = 0; left > 0;) {
                size_t n = write_some(text + at, left < PIECE ? left : PIECE);

                left -= n;
                at = (at + n) % width;
        }
        free(text);
        return 0;
}
