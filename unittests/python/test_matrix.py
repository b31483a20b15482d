# SPDX-License-Identifier: Apache-2.0
"""Decoders for matrices: corrections as columns, equal to those of PyMatching, ldpc and relay_bp, and their errors."""
import pickle

import numpy as np
import pymatching
import pytest
import scipy.sparse
from cudaq_realtime import Decoder, DecodeError

NAMES = ["pymatching:edges=1", "bp-osd", "relay-bp"]


def ring_code(columns=9):
    """The repetition code, each probability another one, so that nearly every syndrome has one likeliest correction."""
    checks = np.eye(columns - 1, columns, dtype=np.uint8) + np.eye(columns - 1, columns, 1, dtype=np.uint8)
    rng = np.random.default_rng(5)
    priors = rng.uniform(0.01, 0.2, columns)
    errors = (rng.random((400, columns)) < priors).astype(np.uint8)
    return checks, priors, errors @ checks.T % 2


HAMMING = np.array([[1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]], dtype=np.uint8)
# Without 111, for which min-sum of relay_bp and ldpc's product-sum find a set of four errors instead of the one.
SYNDROMES = np.array([[k & 1, k >> 1 & 1, k >> 2] for k in range(7)], dtype=np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_corrections_equal_those_of_pymatching_where_one_is_the_likeliest(name):
    checks, priors, syndromes = ring_code()
    theirs = pymatching.Matching.from_check_matrix(checks, weights=np.log((1 - priors) / priors))
    expected, weights = theirs.decode_batch(syndromes, return_weights=True)
    decoder = Decoder.from_matrix(checks, priors, np.eye(9, dtype=np.uint8), name=name)
    statuses = np.empty(len(syndromes), dtype=np.int32)
    ours = decoder.decode_batch_to_vectors(syndromes, statuses=statuses)
    assert (statuses == 0).all() and ours.dtype == np.uint8
    assert np.array_equal(ours, expected)
    assert np.array_equal(decoder.decode_batch(syndromes), expected)  # observable k is column k
    weighed = np.empty(len(syndromes))
    decoder.decode_batch(syndromes, weights=weighed, threads=2)
    assert weighed == pytest.approx(weights, rel=1e-3)
    assert decoder.decode(np.flatnonzero(syndromes[3]), return_weight=True)[1] == weighed[3]
    assert np.array_equal(decoder.decode_to_vector(np.flatnonzero(syndromes[3])), expected[3])


@pytest.mark.parametrize("name", ["bp-osd", "relay-bp"])
def test_corrections_of_a_code_without_edges_equal_those_of_ldpc_and_relay_bp(name):
    decoder = Decoder.from_matrix(HAMMING, 0.05, name=name)
    ours = decoder.decode_batch_to_vectors(SYNDROMES)
    assert np.array_equal(ours @ HAMMING.T % 2, SYNDROMES) and (ours.sum(axis=1) <= 1).all()
    if name == "bp-osd":
        ldpc = pytest.importorskip("ldpc", reason="ldpc is not installed")
        theirs = ldpc.BpOsdDecoder(HAMMING, error_rate=0.05, bp_method="product_sum", max_iter=20,
                                   osd_method="osd_cs", osd_order=3)
        expected = np.array([theirs.decode(one) for one in SYNDROMES])
    else:
        relay_bp = pytest.importorskip("relay_bp", reason="relay_bp is not installed")
        theirs = relay_bp.RelayDecoderF64(scipy.sparse.csr_matrix(HAMMING), error_priors=np.full(7, 0.05))
        expected = np.array([theirs.decode(one) for one in SYNDROMES])
    assert np.array_equal(ours, expected)


def test_corrections_equal_those_of_ldpc_with_many_probabilities():
    ldpc = pytest.importorskip("ldpc", reason="ldpc is not installed")
    checks, priors, syndromes = ring_code()
    theirs = ldpc.BpOsdDecoder(checks, error_channel=list(priors), bp_method="product_sum", max_iter=20,
                               osd_method="osd_cs", osd_order=7)
    expected = np.array([theirs.decode(one) for one in syndromes])
    assert np.array_equal(Decoder.from_matrix(checks, priors, name="bp-osd").decode_batch_to_vectors(syndromes),
                          expected)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csc_matrix, scipy.sparse.csr_matrix,
                                  scipy.sparse.coo_matrix, scipy.sparse.csr_array, lambda m: m.astype(bool),
                                  lambda m: m.astype(np.int64), lambda m: m.tolist()])
def test_each_form_of_a_matrix_is_the_same_model(form):
    given = form(HAMMING), 0.05, form(HAMMING[:2])
    decoder = Decoder.from_matrix(*given, name="bp-osd")
    assert decoder == Decoder.from_matrix(HAMMING, np.full(7, 0.05), HAMMING[:2], name="bp-osd")
    assert (decoder.num_detectors, decoder.num_observables) == (3, 2)
    assert pickle.loads(pickle.dumps(decoder)).decode_to_vector([0, 1]).tolist() == [0, 0, 1, 0, 0, 0, 0]


def test_stored_zeros_and_unsorted_rows_of_a_sparse_matrix_are_read():
    given = scipy.sparse.csc_matrix((np.array([1, 1, 0, 1], np.uint8), [1, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    given.has_sorted_indices = False
    given.data[3] = 0
    given.data[2] = 1
    assert Decoder.from_matrix(given, 0.1) == Decoder.from_matrix([[1, 0], [1, 1]], 0.1)


def test_checks_and_observables_that_no_column_flips_and_columns_of_probability_0_stay():
    decoder = Decoder.from_matrix([[1, 0], [0, 1], [0, 0]], [0, 0.1], [[0, 1], [0, 0]], name="bp-osd")
    assert (decoder.num_detectors, decoder.num_observables) == (3, 2)
    assert decoder.decode_to_vector([1]).tolist() == [0, 1] and decoder.decode([1]).tolist() == [1, 0]


@pytest.mark.parametrize("checks, priors, observables, text", [
    ([1, 0], 0.1, None, r"check_matrix has the shape \(2,\), accepted: \(rows, columns\)"),
    (np.zeros((0, 2), int), 0.1, None, r"check_matrix has the shape \(0, 2\), accepted: checks and columns"),
    (np.zeros((2, 0), int), [], None, r"check_matrix has the shape \(2, 0\)"),
    ([[1, 0], [1]], 0.1, None, "check_matrix is no matrix"),
    ([[1.0, 0.0]], 0.1, None, r"check_matrix has the type float64, accepted: bool and whole numbers"),
    (scipy.sparse.csc_matrix([[1.0, 1.0]]), 0.1, None, "check_matrix has the type float64"),
    ([[1, 1], [0, 2]], 0.1, None, r"check_matrix\[1, 1\] is 2, accepted: 0 and 1"),
    ([[1, 1], [0, -1]], 0.1, None, r"check_matrix\[1, 1\] is -1"),
    (scipy.sparse.coo_matrix(([1, 1], ([0, 0], [0, 0])), shape=(1, 1)), 0.1, None, r"check_matrix\[0, 0\] is 2"),
    ([[1, 0, 1]], 0.1, None, "column 1 of check_matrix is empty"),
    ([[1, 1]], 0.1, None, "columns 0 and 1 of check_matrix are equal"),
    ([[1, 1]], 0.1, [[1, 1]], "columns 0 and 1 of check_matrix and their observables are equal"),
    ([[1, 1]], 0.1, [[1, 0, 0]], "observables has 3 columns, accepted: 2"),
    ([[1, 1]], 0.1, [1, 0], r"observables has the shape \(2,\)"),
    ([[1, 1]], 0.1, [[1, 3]], r"observables\[0, 1\] is 3"),
    ([[1, 1]], [0.1], [[1, 0]], r"priors has the shape \(1,\), accepted: one probability, or 2"),
    ([[1, 1]], [0.1, np.nan], [[1, 0]], r"priors\[1\] is nan, accepted: 0 to 1"),
    ([[1, 1]], [0.1, 1.5], [[1, 0]], r"priors\[1\] is 1.5"),
    ([[1, 1]], -0.1, [[1, 0]], r"priors is -0.1"),
    ([[1, 1]], np.inf, [[1, 0]], r"priors is inf"),
    ([[1, 1]], "0.1", [[1, 0]], "priors has the type"),
    ([[1, 1]], [0.1, None], [[1, 0]], "priors has the type object"),
    ([[1, 1]], 1j, [[1, 0]], "priors has the type complex128"),
])
def test_matrices_that_are_no_model_are_refused_with_the_place(checks, priors, observables, text):
    with pytest.raises(ValueError, match=text):
        Decoder.from_matrix(checks, priors, observables)


def test_columns_that_differ_in_their_observables_only_are_a_model():
    decoder = Decoder.from_matrix([[1, 1]], [0.1, 0.2], [[0, 1]], name="pymatching:edges=1")
    assert decoder.decode([0]).tolist() == [1]
    with pytest.raises(NotImplementedError, match="not one error"):
        decoder.decode_to_vector([0])


def test_decoders_that_know_no_errors_say_which_do():
    for name in ("lookup", "pymatching"):
        decoder = Decoder.from_matrix([[1, 1], [0, 1]], 0.1, name=name)
        for call in (decoder.decode_to_vector, decoder.decode_batch_to_vectors):
            with pytest.raises(NotImplementedError, match="'bp-osd', 'relay-bp' and 'pymatching:edges=1' do"):
                call([[0, 1]])
    loop = "repeat 2 {\n error(0.1) D0\n shift_detectors 1\n}"
    with pytest.raises(NotImplementedError, match="flattened"):
        Decoder("pymatching:edges=1", loop).decode_to_vector([0])


def test_matrices_without_observables_give_vectors_also_without_a_name():
    checks, priors, syndromes = ring_code()
    no_graph = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1]], dtype=np.uint8)
    for matrix, name, shots in ((checks, "pymatching", syndromes[:20]), (HAMMING, "pymatching", SYNDROMES),
                                (no_graph, "bp-osd", no_graph.T)):
        decoder = Decoder.from_matrix(matrix, priors if matrix is checks else 0.05)
        assert decoder.name == name
        assert np.array_equal(decoder.decode_batch_to_vectors(shots) @ matrix.T % 2, shots)
    with_observables = Decoder.from_matrix(checks, priors, np.eye(9, dtype=np.uint8))
    assert with_observables == Decoder.from_matrix(checks, priors, np.eye(9, dtype=np.uint8), name="auto")
    with pytest.raises(NotImplementedError, match="'pymatching:edges=1' do"):
        with_observables.decode_to_vector([0])


@pytest.mark.parametrize("name", NAMES)
def test_a_syndrome_that_no_column_explains_has_its_status_and_no_correction(name):
    decoder = Decoder.from_matrix([[1], [1]], 0.1, name=name)
    syndromes = np.array([[1, 1], [1, 0]])
    with pytest.raises(DecodeError) as raised:
        decoder.decode_batch_to_vectors(syndromes)
    assert raised.value.shot == 1
    statuses, weights = np.empty(2, dtype=np.int32), np.empty(2)
    assert decoder.decode_batch_to_vectors(syndromes, statuses=statuses).tolist() == [[1], [0]]
    assert statuses[0] == 0 and statuses[1] == raised.value.status
    decoder.decode_batch(syndromes, statuses=statuses, weights=weights)
    assert np.isfinite(weights[0]) and np.isnan(weights[1])
    with pytest.raises(DecodeError):
        decoder.decode_to_vector([0])


def test_a_shot_without_a_solution_at_its_deadline_raises_unless_statuses_are_wanted():
    checks, priors, syndromes = ring_code()
    syndromes = syndromes[syndromes.any(axis=1)][:3]
    decoder = Decoder.from_matrix(checks, priors, name="bp-osd:deadline_us=0.001")
    for call in (lambda: decoder.decode_batch_to_vectors(syndromes),
                 lambda: decoder.decode_to_vector(np.flatnonzero(syndromes[0]))):
        with pytest.raises(DecodeError) as raised:
            call()
        assert raised.value.status == 9
    statuses = np.empty(3, dtype=np.int32)
    assert not decoder.decode_batch_to_vectors(syndromes, statuses=statuses).any()
    assert (statuses == 9).all()


def test_weights_want_an_array_of_their_own_and_are_nan_without_a_weight():
    decoder = Decoder("lookup", "error(0.1) D0")
    weights = np.empty(1)
    decoder.decode_batch([[1]], weights=weights)
    assert np.isnan(weights[0]) == np.isnan(decoder.decode([0], return_weight=True)[1])
    for bad in (np.empty(2), np.empty(1, dtype=np.float32), [0.0]):
        with pytest.raises(ValueError, match=r"weights is .*float64\[1\]"):
            decoder.decode_batch([[1]], weights=bad)


def test_edges_of_split_errors_are_columns():
    y_error = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1], [0, 1, 1]], dtype=np.uint8)
    decoder = Decoder.from_matrix(y_error, [0.01, 0.01, 0.2], name="pymatching:edges=1")
    assert decoder.decode_to_vector([0, 1, 2, 3]).tolist() == [1, 1, 0]  # matching takes the parts
    assert np.array_equal(y_error @ decoder.decode_to_vector([0, 1]) % 2, [1, 1, 0, 0])
