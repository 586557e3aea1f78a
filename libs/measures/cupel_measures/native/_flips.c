/* The largest statistics of the max-T tests in each replicate. The bits are those of the numpy version.
 *
 * The function takes buffers and returns bytes. It releases the interpreter lock while it computes. Every pair
 * of systems is computed once, for LANES replicates at a time, so that compilers use vector instructions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define LANES 8

/* Fill above[systems][LANES]: for each system s, the maximum over other systems o of (sums[o] - sums[s]) * weight,
 * or 0 if all are negative. */
static void largest_block(const double *sums, const double *weights, double *above, int64_t systems) {
    memset(above, 0, (size_t)systems * LANES * sizeof(double));
    for (int64_t i = 0; i < systems; i++) {
        double own[LANES], top[LANES];
        memcpy(own, sums + i * LANES, sizeof own);
        memcpy(top, above + i * LANES, sizeof top);
        const double *row = weights + i * systems;
        for (int64_t j = i + 1; j < systems; j++) {
            const double *other = sums + j * LANES;
            double *reached = above + j * LANES;
            double weight = row[j];
            for (int lane = 0; lane < LANES; lane++) {
                double r = (other[lane] - own[lane]) * weight;
                double opposite = -r;
                top[lane] = r > top[lane] ? r : top[lane];
                reached[lane] = opposite > reached[lane] ? opposite : reached[lane];
            }
        }
        memcpy(above + i * LANES, top, sizeof top);
    }
}

/* Fill `result` for all replicates. Return 0 if there is not enough memory. */
static int largest_all(const double *sums, const double *weights, double *result, int64_t systems, int64_t replicates) {
    size_t size = (size_t)systems * LANES * sizeof(double);
    double *block = malloc(size), *above = malloc(size);
    for (int64_t begin = 0; block && above && begin < replicates; begin += LANES) {
        int64_t width = replicates - begin < LANES ? replicates - begin : LANES;
        memset(block, 0, size);
        for (int64_t i = 0; i < systems; i++)
            memcpy(block + i * LANES, sums + i * replicates + begin, (size_t)width * sizeof(double));
        largest_block(block, weights, above, systems);
        for (int64_t i = 0; i < systems; i++)
            memcpy(result + i * replicates + begin, above + i * LANES, (size_t)width * sizeof(double));
    }
    int done = block && above;
    free(block);
    free(above);
    return done;
}

static PyObject *largest(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer sums, weights;
    Py_ssize_t systems;
    if (!PyArg_ParseTuple(args, "y*y*n", &sums, &weights, &systems))
        return NULL;
    PyObject *result = NULL;
    if (systems < 1 || weights.len != systems * systems * 8 || sums.len % (systems * 8) != 0)
        PyErr_SetString(PyExc_ValueError, "expected sums of `systems` rows and a square matrix of weights");
    else if ((result = PyBytes_FromStringAndSize(NULL, sums.len))) {
        int done;
        double *to = (double *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS;
        done = largest_all(sums.buf, weights.buf, to, systems, sums.len / (systems * 8));
        Py_END_ALLOW_THREADS;
        if (!done) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        }
    }
    PyBuffer_Release(&sums), PyBuffer_Release(&weights);
    return result;
}

static PyMethodDef functions[] = {
    {"largest", largest, METH_VARARGS, "largest(sums, weights, systems) -> the largest statistics of each system"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_flips", "The largest statistics of the max-T tests, compiled.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__flips(void) {
    return PyModule_Create(&definition);
}
