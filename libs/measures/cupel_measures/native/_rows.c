/* What rows.py does most often, compiled: thinning rows of documents, adding up and counting along them.
 *
 * Buffers go in, bytes come out; the interpreter is let go while C works. `starts`, int64[rows + 1], cuts the
 * columns into rows, and is checked as the rows are walked along. Sums add one value after another, as numpy's
 * bincount does: the same bits.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Columns of hits, cut into rows. */
typedef struct {
    const int64_t *starts;
    int64_t rows, hits;
} Cut;

/* Whether `view` holds numbers of `size` bytes, aligned as such. */
static int holds(const Py_buffer *view, Py_ssize_t size) {
    return view->len % size == 0 && (uintptr_t)view->buf % (uintptr_t)size == 0;
}

/* Whether `starts` cuts `hits` hits into rows that follow one another, from the first hit to the last. */
static int cut_of(Cut *cut, const Py_buffer *starts, int64_t hits) {
    if (!holds(starts, 8) || starts->len < 8)
        return 0;
    *cut = (Cut){starts->buf, starts->len / 8 - 1, hits};
    if (cut->starts[0] != 0 || cut->starts[cut->rows] != hits)
        return 0;
    int right = 1;
    for (int64_t row = 0; row < cut->rows; row++)
        right &= cut->starts[row] <= cut->starts[row + 1];
    return right;
}

static PyObject *refused(void) {
    PyErr_SetString(PyExc_ValueError, "columns of one length, and where each row of them starts, are wanted");
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ thinning */

typedef struct {
    const int32_t *rank, *document;
    int32_t *ranks, *documents;
    int64_t *starts;
} Thinned;

/* Keep the hits whose document is in `mask`; how many that are, or -1 for a document that it doesn't know. */
static int64_t keep(const Cut *cut, const Thinned *to, const uint8_t *mask, int64_t known) {
    int64_t kept = 0;
    for (int64_t row = 0; row < cut->rows; row++) {
        to->starts[row] = kept;
        for (int64_t i = cut->starts[row]; i < cut->starts[row + 1]; i++) {
            int32_t document = to->document[i];
            if (document < 0 || document >= known)
                return -1;
            to->ranks[kept] = to->rank[i]; /* without a branch: whether it stays is known only later */
            to->documents[kept] = document;
            kept += mask[document] != 0;
        }
    }
    to->starts[cut->rows] = kept;
    return kept;
}

/* only(mask, rank, document, starts): see `Hits.of_documents`. */
static PyObject *only(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer mask, rank, document, starts;
    if (!PyArg_ParseTuple(args, "y*y*y*y*", &mask, &rank, &document, &starts))
        return NULL;
    Cut cut;
    int64_t kept = -1;
    PyObject *parts[3] = {NULL}, *result = NULL;
    if (!holds(&rank, 4) || !holds(&document, 4) || rank.len != document.len || !cut_of(&cut, &starts, rank.len / 4)) {
        refused();
        goto end;
    }
    /* room for one more: the last hit, if it is not kept, is written all the same */
    for (int i = 0; i < 3; i++)
        if (!(parts[i] = PyBytes_FromStringAndSize(NULL, i < 2 ? rank.len + 4 : starts.len)))
            goto end;
    Thinned to = {rank.buf, document.buf, (int32_t *)PyBytes_AS_STRING(parts[0]),
                  (int32_t *)PyBytes_AS_STRING(parts[1]), (int64_t *)PyBytes_AS_STRING(parts[2])};
    Py_BEGIN_ALLOW_THREADS;
    kept = keep(&cut, &to, mask.buf, mask.len);
    Py_END_ALLOW_THREADS;
    if (kept < 0)
        refused();
    else if (_PyBytes_Resize(&parts[0], kept * 4) == 0 && _PyBytes_Resize(&parts[1], kept * 4) == 0)
        result = PyTuple_Pack(3, parts[0], parts[1], parts[2]);
end:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    PyBuffer_Release(&mask), PyBuffer_Release(&rank), PyBuffer_Release(&document), PyBuffer_Release(&starts);
    return result;
}

/* ---------------------------------------------------------------------------------------------- adding up */

/* sums(values, starts): see `Hits.sum`. */
static PyObject *sums(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer values, starts;
    if (!PyArg_ParseTuple(args, "y*y*", &values, &starts))
        return NULL;
    Cut cut;
    PyObject *result = NULL;
    if (!holds(&values, 8) || !cut_of(&cut, &starts, values.len / 8))
        refused();
    else if ((result = PyBytes_FromStringAndSize(NULL, cut.rows * 8))) {
        double *sum = (double *)PyBytes_AS_STRING(result);
        const double *value = values.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t row = 0; row < cut.rows; row++) {
            double total = 0.0;
            for (int64_t i = cut.starts[row]; i < cut.starts[row + 1]; i++)
                total += value[i];
            sum[row] = total;
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&values), PyBuffer_Release(&starts);
    return result;
}

/* precisions(rank, starts): see `Hits.precision`. */
static PyObject *precisions(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer rank, starts;
    if (!PyArg_ParseTuple(args, "y*y*", &rank, &starts))
        return NULL;
    Cut cut;
    PyObject *result = NULL;
    if (!holds(&rank, 4) || !cut_of(&cut, &starts, rank.len / 4))
        refused();
    else if ((result = PyBytes_FromStringAndSize(NULL, rank.len * 2))) {
        double *precision = (double *)PyBytes_AS_STRING(result);
        const int32_t *at = rank.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t row = 0; row < cut.rows; row++)
            for (int64_t first = cut.starts[row], i = first; i < cut.starts[row + 1]; i++)
                precision[i] = (double)(int32_t)(i - first + 1) / at[i];
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&rank), PyBuffer_Release(&starts);
    return result;
}

/* ---------------------------------------------------------------------------------------------- counting */

/* How many of `others` stand above each of `those` in its row; how many of those there are, or -1 as `keep`. */
static int64_t count(const Cut *cut, const int32_t *document, const uint8_t *those, const uint8_t *others,
                     int64_t known, int64_t *above) {
    int64_t found = 0;
    for (int64_t row = 0; row < cut->rows; row++) {
        int64_t seen = 0;
        for (int64_t i = cut->starts[row]; i < cut->starts[row + 1]; i++) {
            int32_t at = document[i];
            if (at < 0 || at >= known)
                return -1;
            above[found] = seen; /* without a branch, as in `keep` */
            found += those[at] != 0;
            seen += others[at] != 0;
        }
    }
    return found;
}

/* above(those, others, document, starts): see `Hits.above`. */
static PyObject *above(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer those, others, document, starts;
    if (!PyArg_ParseTuple(args, "y*y*y*y*", &those, &others, &document, &starts))
        return NULL;
    Cut cut;
    int64_t found = -1;
    PyObject *result = NULL;
    if (!holds(&document, 4) || those.len != others.len || !cut_of(&cut, &starts, document.len / 4))
        refused();
    else if ((result = PyBytes_FromStringAndSize(NULL, document.len * 2 + 8))) { /* one more, as in `only` */
        int64_t *to = (int64_t *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS;
        found = count(&cut, document.buf, those.buf, others.buf, those.len, to);
        Py_END_ALLOW_THREADS;
        if (found < 0) {
            Py_CLEAR(result);
            refused();
        } else
            _PyBytes_Resize(&result, found * 8);
    }
    PyBuffer_Release(&those), PyBuffer_Release(&others), PyBuffer_Release(&document), PyBuffer_Release(&starts);
    return result;
}

static PyMethodDef functions[] = {
    {"only", only, METH_VARARGS, "only(mask, rank, document, starts) -> those of the documents in the mask"},
    {"sums", sums, METH_VARARGS, "sums(values, starts) -> the sum of each row"},
    {"precisions", precisions, METH_VARARGS, "precisions(rank, starts) -> place in the row by rank"},
    {"above", above, METH_VARARGS, "above(those, others, document, starts) -> others above each of those"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rows", "Thinning rows of documents, adding up and counting along them, compiled.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rows(void) {
    return PyModule_Create(&definition);
}
