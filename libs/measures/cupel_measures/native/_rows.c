/* Compiled versions of the most frequent operations of scoring/rows.py: select, sum and count hits by row.
 *
 * Functions take buffers and return bytes. They release the interpreter lock while they compute. `starts`,
 * int64[rows + 1], contains the index of the first hit of each row, and the end of the last row. Sums add the
 * values in order, as numpy's bincount does, so the bits of the results are the same.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The division of the hits into rows. */
typedef struct {
    const int64_t *starts;
    int64_t rows, hits;
} Cut;

/* Return whether `view` contains aligned numbers of `size` bytes. */
static int holds(const Py_buffer *view, Py_ssize_t size) {
    return view->len % size == 0 && (uintptr_t)view->buf % (uintptr_t)size == 0;
}

/* Fill `cut`. Return whether `starts` ascends from 0 to `hits`, the number of hits. */
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
    PyErr_SetString(PyExc_ValueError, "expected columns of equal length, ascending row starts and valid document indices");
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ selection */

typedef struct {
    const int32_t *rank, *document;
    int32_t *ranks, *documents;
    int64_t *starts;
} Thinned;

/* Copy the hits whose document is in `mask`. Return their number, or -1 if a document is not 0..known - 1. */
static int64_t keep(const Cut *cut, const Thinned *to, const uint8_t *mask, int64_t known) {
    int64_t kept = 0;
    for (int64_t row = 0; row < cut->rows; row++) {
        to->starts[row] = kept;
        for (int64_t i = cut->starts[row]; i < cut->starts[row + 1]; i++) {
            int32_t document = to->document[i];
            if (document < 0 || document >= known)
                return -1;
            to->ranks[kept] = to->rank[i]; /* the next hit overwrites an unselected one; this avoids a branch */
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
    /* One entry more, because `keep` also writes the last hit if it is not selected. */
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

/* ---------------------------------------------------------------------------------------------- sums */

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

/* ---------------------------------------------------------------------------------------------- counts */

/* Write to `above`, for each hit in `those`, the number of hits above it in its row that are in `others`.
 * Return the number of hits in `those`, or -1 if a document is not 0..known - 1. */
static int64_t count(const Cut *cut, const int32_t *document, const uint8_t *those, const uint8_t *others,
                     int64_t known, int64_t *above) {
    int64_t found = 0;
    for (int64_t row = 0; row < cut->rows; row++) {
        int64_t seen = 0;
        for (int64_t i = cut->starts[row]; i < cut->starts[row + 1]; i++) {
            int32_t at = document[i];
            if (at < 0 || at >= known)
                return -1;
            above[found] = seen; /* overwritten as in `keep` */
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
    else if ((result = PyBytes_FromStringAndSize(NULL, document.len * 2 + 8))) { /* One entry more, as in `only`. */
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
    {"only", only, METH_VARARGS,
     "only(mask, rank, document, starts) -> rank, document and starts of the hits in the mask"},
    {"sums", sums, METH_VARARGS, "sums(values, starts) -> sum of the values of each row"},
    {"precisions", precisions, METH_VARARGS,
     "precisions(rank, starts) -> position of each hit in its row, divided by its rank"},
    {"above", above, METH_VARARGS,
     "above(those, others, document, starts) -> number of hits in others above each hit in those"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rows", "Compiled selection, sums and counts of hits by row.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rows(void) {
    return PyModule_Create(&definition);
}
