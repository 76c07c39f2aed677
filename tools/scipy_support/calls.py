"""A call for each function that SciPy lists as following the array API standard.

`f` is the function; other names are arguments, which `arguments.py` makes. An underscore in place
of a call means that there is none, and is followed by the reason. Functions of `scipy.special`
without an entry get as many positive numbers as they take.
"""

from __future__ import annotations


def _each(names: str, call: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), call)


_WINDOWS = {
    "general_cosine": "f(8, c)", "kaiser": "f(8, 3.0, xp=xp)",
    "kaiser_bessel_derived": "f(8, 3.0, xp=xp)", "gaussian": "f(8, 2.0, xp=xp)",
    "general_gaussian": "f(8, 1.5, 2.0, xp=xp)", "chebwin": "f(8, 60, xp=xp)",
    "general_hamming": "f(8, 0.6, xp=xp)", "get_window": "f('hann', 8, xp=xp)",
}  # fmt: skip

_IMAGES = {
    **_each(
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss "
        "binary_opening binary_propagation distance_transform_bf distance_transform_cdt "
        "distance_transform_edt",
        "f(mask)",
    ),
    **_each(
        "black_tophat grey_closing grey_dilation grey_erosion grey_opening median_filter "
        "maximum_filter minimum_filter morphological_gradient morphological_laplace "
        "uniform_filter white_tophat",
        "f(image, size=3)",
    ),
    **_each(
        "convolve correlate",
        "f(image, kernel)",
    ),
    **_each(
        "convolve1d correlate1d",
        "f(image, c)",
    ),
    **_each(
        "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform",
        "f(spectrum, 2.0)",
    ),
    **_each(
        "gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace",
        "f(image, 1.0)",
    ),
    **_each(
        "maximum_filter1d minimum_filter1d uniform_filter1d",
        "f(image, 3)",
    ),
    **_each(
        "center_of_mass extrema maximum maximum_position mean median minimum minimum_position "
        "standard_deviation sum sum_labels variance laplace prewitt sobel spline_filter "
        "spline_filter1d",
        "f(image)",
    ),
    "affine_transform": "f(image, kernel[:2, :2])", "find_objects": "f(labels)",
    "generic_filter": "f(image, np.max, size=3)",
    "generic_filter1d": "f(image, lambda a, b: np.copyto(b, a[1:-1]), 3)",
    "generic_gradient_magnitude": "f(image, scipy.ndimage.sobel)",
    "generic_laplace": "f(image, lambda a, axis, output, mode, cval: scipy.ndimage.correlate1d("
    "a, [1, -2, 1], axis, output, mode, cval, 0))",
    "geometric_transform": "f(image, lambda place: (place[0] - 0.5, place[1]))",
    "histogram": "f(image, 0, 1, 4)", "iterate_structure": "f(mask[:3, :3], 2)",
    "label": "f(mask)", "labeled_comprehension": "f(image, labels, index, np.mean, float, 0)",
    "map_coordinates": "f(image, coordinates)", "percentile_filter": "f(image, 30, size=3)",
    "rank_filter": "f(image, 1, size=3)", "rotate": "f(image, 20.0)", "shift": "f(image, 0.5)",
    "value_indices": "f(labels)", "watershed_ift": "f(bytes_, labels)", "zoom": "f(image, 1.5)",
    "vectorized_filter": "f(image, xp.mean, size=3)",
}  # fmt: skip

_STATS = {
    **_each(
        "differential_entropy tmean tvar tmin tmax tstd tsem moment skew kurtosis describe kstat "
        "skewtest kurtosistest normaltest jarque_bera sem zscore iqr median_abs_deviation "
        "sigmaclip lmoment variation circmean circvar circstd rankdata kstatvar",
        "f(x)",
    ),
    **_each(
        "gmean hmean gzscore gstd entropy power_divergence chisquare",
        "f(p)",
    ),
    **_each(
        "pearsonr ttest_ind ttest_rel brunnermunzel cramervonmises_2samp epps_singleton_2samp "
        "ansari bartlett levene fligner mood wilcoxon mannwhitneyu chatterjeexi spearmanrho "
        "f_oneway alexandergovern kruskal zmap",
        "f(x, y)",
    ),
    "bootstrap": "f((x,), mean, n_resamples=20, rng=rng, method='percentile')",
    "monte_carlo_test": "f(x, normal, mean, n_resamples=20)",
    "power": "f(lambda x, axis: scipy.stats.ttest_1samp(x, 0.0, axis=axis).pvalue, normal, "
    "(5.0,), n_resamples=20)",
    "permutation_test": "f((x, y), difference, n_resamples=20, vectorized=True, rng=rng)",
    "pmean": "f(p, 3)", "mode": "f(labels.ravel() if hasattr(labels, 'ravel') else "
    "labels.reshape(-1))", "trim_mean": "f(x, 0.1)", "ttest_1samp": "f(x, 0.1)",
    "ttest_ind_from_stats": "f(x[0], p[0], 5, x[1], p[1], 6)",
    "ks_1samp": "f(x, scipy.special.ndtr)", "cramervonmises": "f(x, scipy.special.ndtr)",
    "friedmanchisquare": "f(x, y, p)", "combine_pvalues": "f(u)",
    "boxcox_llf": "f(0.5, p)", "yeojohnson_llf": "f(0.5, x)", "directional_stats": "f(rows)",
    "false_discovery_control": "f(u)", "quantile": "f(x, u)",
}  # fmt: skip

_SIGNAL = {
    **_each(
        "besselap buttap cheb1ap cheb2ap ellipap",
        "_ takes numbers only",
    ),
    **_each(
        "bilinear freqs freqz group_delay tf2zpk tf2sos normalize",
        "f(b, a)",
    ),
    **_each(
        "lfilter filtfilt",
        "f(b, a, x)",
    ), "lfilter_zi": "f(b, a)",
    **_each(
        "lp2bp lp2bs lp2hp lp2lp",
        "f(b, a)",
    ),
    **_each(
        "lp2bp_zpk lp2bs_zpk lp2hp_zpk lp2lp_zpk",
        "f(zeros, poles, 1.5)",
    ),
    **_each(
        "zpk2sos zpk2tf",
        "f(zeros, poles, 1.5)",
    ),
    **_each(
        "freqs_zpk freqz_zpk",
        "f(zeros, poles, 1.5)",
    ),
    **_each(
        "freqz_sos sos2tf sosfilt_zi sosfreqz",
        "f(sos)",
    ),
    **_each(
        "sosfilt sosfiltfilt",
        "f(sos, long)",
    ),
    **_each(
        "convolve correlate fftconvolve oaconvolve",
        "f(x, y)",
    ),
    **_each(
        "convolve2d correlate2d",
        "f(image, kernel)",
    ),
    **_each(
        "cspline1d qspline1d detrend hilbert envelope medfilt wiener gauss_spline",
        "f(x)",
    ),
    **_each(
        "cspline2d spline_filter",
        "f(large)",
    ),
    **_each(
        "medfilt2d hilbert2",
        "f(image)",
    ),
    **_each(
        "cspline1d_eval qspline1d_eval",
        "f(x, p)",
    ),
    "gauss_spline": "f(x, 3)", "abcd_normalize": "f(square, rows[:2, :1], row, xp.ones((1, 1)))",
    "bessel": "f(3, cut)", "butter": "f(3, cut)", "cheby1": "f(3, 1, cut)",
    "cheby2": "f(3, 20, cut)", "ellip": "f(3, 1, 20, cut)", "iirfilter": "f(3, cut, btype='low')",
    "buttord": "f(cut, xp.asarray(0.6, dtype=xp.float64), 3, 20)",
    "cheb1ord": "f(cut, xp.asarray(0.6, dtype=xp.float64), 3, 20)",
    "cheb2ord": "f(cut, xp.asarray(0.6, dtype=xp.float64), 3, 20)",
    "ellipord": "f(cut, xp.asarray(0.6, dtype=xp.float64), 3, 20)",
    "iirdesign": "f(cut, xp.asarray(0.6, dtype=xp.float64), 3, 20)",
    "bilinear_zpk": "f(zeros, poles, 1.5, 2.0)", "bode": "_ takes systems, no arrays",
    "impulse": "_ takes systems, no arrays", "choose_conv_method": "f(x, y)",
    "deconvolve": "f(x, b)", "firls": "f(5, bands, gains)", "firwin": "f(5, cut)",
    "firwin2": "f(5, bands, gains)", "gammatone": "f(440.0, 'iir', fs=16000, xp=xp)",
    "get_window": "f('hann', 8, xp=xp)", "iircomb": "f(0.5, 3.0, xp=xp)",
    "iirnotch": "f(0.5, 3.0, xp=xp)", "iirpeak": "f(0.5, 3.0, xp=xp)",
    "lfiltic": "f(b, a, x)", "minimum_phase": "f(c)", "order_filter": "f(x, c, 1)",
    "place_poles": "_ takes NumPy's arrays only", "remez": "f(5, bands / 2, gains[::2])",
    "resample": "f(x, 6)", "resample_poly": "f(x, 2, 3)", "savgol_coeffs": "f(5, 2, xp=xp)",
    "savgol_filter": "f(x, 5, 2)", "upfirdn": "f(c, x, 2)", "vectorstrength": "f(p, 2.0)",
    "sos2zpk": "f(sos)[1:]", "freqs": "f(b, a, worN=p)",
}  # fmt: skip

_SPECIAL = {
    "betaincinv": "f(v, w, u)", "gammaincinv": "f(v, u)", "gammainccinv": "f(v, u)",
    "betainc": "f(v, w, u)", "betaincc": "f(v, w, u)", "erfinv": "f(u)", "ndtri": "f(u)",
    "logit": "f(u)", "entr": "f(p)", "stdtrit": "f(v, u)", "chdtri": "f(v, u)",
    "bdtr": "f(counts, more, u)", "bdtrc": "f(counts, more, u)", "bdtri": "f(counts, more, u)",
    "nbdtr": "f(counts, more, u)", "nbdtrc": "f(counts, more, u)", "nbdtri": "f(counts, more, u)",
    "pdtr": "f(counts, p)", "pdtrc": "f(counts, p)", "pdtri": "f(counts, u)",
    "fdtri": "f(p, q, u)", "chdtr": "f(v, p)", "chdtrc": "f(v, p)", "stdtr": "f(v, x)",
    "gammainc": "f(v, p)", "gammaincc": "f(v, p)", "expn": "f(counts, p)", "yn": "f(counts, p)",
    "polygamma": "f(counts, p)", "multigammaln": "f(p + 3, 2)", "ellipk": "f(u)",
    "ellipkm1": "f(u)", "hyp1f1": "f(v, w, u)", "zeta": "f(v + 1, q)", "zetac": "f(p + 1)",
    "lpmv": "f(counts, counts, u)", "kl_div": "f(p, q)", "huber": "f(p, x)",
    "pseudo_huber": "f(p, x)", "binom": "f(p + 2, q)", "spence": "f(p)", "poch": "f(p, q)",
    "boxcox": "f(p, x)", "boxcox1p": "f(p, x)", "inv_boxcox": "f(p, q)",
    "inv_boxcox1p": "f(p, q)", "radian": "f(x, y, p)", "gdtr": "f(p, q, u)",
    "gdtrc": "f(p, q, u)", "fdtr": "f(p, q, u)", "fdtrc": "f(p, q, u)", "logsumexp": "f(x)",
    "softmax": "f(x)", "log_softmax": "f(x)",
}  # fmt: skip

_FFT = {
    **_each(
        "fft ifft rfft irfft hfft ihfft fftshift ifftshift dct idct dst idst",
        "f(x)",
    ),
    **_each(
        "fftn ifftn fft2 ifft2 rfftn rfft2 irfftn irfft2 hfftn hfft2 ihfftn ihfft2 dctn idctn "
        "dstn idstn",
        "f(image)",
    ),
    "fftfreq": "f(5, xp=xp)", "rfftfreq": "f(5, xp=xp)", "fht": "f(p, 0.1, 0.5)",
    "ifht": "f(p, 0.1, 0.5)",
}  # fmt: skip

_HIERARCHY = {
    **_each(
        "single complete average weighted centroid median ward linkage",
        "f(distances)",
    ),
    **_each(
        "cophenet inconsistent leaves_list to_mlab_linkage is_monotonic is_valid_linkage "
        "num_obs_linkage maxdists to_tree",
        "f(tree)",
    ),
    "optimal_leaf_ordering": "f(tree, distances)", "from_mlab_linkage": "f(mlab)",
    "is_valid_im": "f(inconsistency)", "correspond": "f(tree, distances)",
    "fcluster": "f(tree, 1.0)", "fclusterdata": "f(rows, 1.0)",
    "dendrogram": "f(tree, no_plot=True)", "is_isomorphic": "f(members, members)",
    "maxinconsts": "f(tree, inconsistency)", "maxRstat": "f(tree, inconsistency, 0)",
    "leaders": "f(tree, members)",
}  # fmt: skip

_INTERPOLATE = {
    "BSpline": "f(knots, x[:4], 2)(u)", "make_interp_spline": "f(places, y, 3)(u)",
    "make_lsq_spline": "f(places, y, clamped, 2)(u)",
    "make_smoothing_spline": "f(places, y)(u)", "PPoly": "f(kernel, places[:4])(u)",
    "BPoly": "f(kernel, places[:4])(u)", "RBFInterpolator": "f(rows, x[:6])(rows + 0.1)",
    "CubicHermiteSpline": "f(places, y, x)(u)", "PchipInterpolator": "f(places, y)(u)",
    "Akima1DInterpolator": "f(places, y)(u)", "CubicSpline": "f(places, y)(u)",
    "generate_knots": "list(f(places, y))", "make_splrep": "f(places, y)(u)",
    "make_splprep": "f((x, y))[0](u)", "NdBSpline": "f((knots,), x[:4], 2)(u[:, None])",
    "RegularGridInterpolator": "f((places[:5], places[:6]), image)(u[:6, None] * 0.3 + "
    "xp.zeros((6, 2), dtype=xp.float64))",
}  # fmt: skip

_ROTATION = {
    "Rotation": "f.from_rotvec(x[:3]).as_matrix()",
    "RigidTransform": "f.from_exp_coords(x[:6]).as_matrix()",
    "Slerp": "f(places[:2], scipy.spatial.transform.Rotation.from_rotvec(rows[:2, :1] * "
    "kernel[:1, :]))(u * 0.05 + places[0]).as_rotvec()",
}  # fmt: skip

CALLS: dict[str, dict[str, str]] = {
    "cluster.hierarchy": _HIERARCHY,
    "cluster.vq": {
        "whiten": "f(rows)", "vq": "f(rows, rows[:2])", "kmeans": "f(rows, rows[:2])",
        "kmeans2": "f(rows, rows[:2], minit='matrix')",
    },
    "constants": {
        "convert_temperature": "f(p, 'C', 'K')", "lambda2nu": "f(p)", "nu2lambda": "f(p)",
    },
    "differentiate": {
        "derivative": "f(cube, x)", "jacobian": "f(lambda x: x**3, x)",
        "hessian": "f(lambda x: xp.sum(x**3, axis=0), x).ddf",
    },
    "fft": _FFT,
    "integrate": {
        "trapezoid": "f(x)", "cumulative_trapezoid": "f(x)", "cumulative_simpson": "f(x)",
        "romb": "f(x[:9])",
        "qmc_quad": "f(lambda x: xp.sum(x, axis=0), row[0] * 0, row[0] * 0 + 1, n_points=8, "
        "qrng=scipy.stats.qmc.Halton(2, rng=3))",
        "tanhsinh": "f(cube, u, p + 1)", "nsum": "f(lambda k: 1 / k**3, xp.asarray(1.0, "
        "dtype=xp.float64), xp.asarray(xp.inf, dtype=xp.float64))",
        "cubature": "f(lambda x: xp.sum(x**2, axis=-1), row[0] * 0, row[0] * 0 + 1)",
    },
    "interpolate": _INTERPOLATE,
    "linalg": {
        "block_diag": "f(kernel, rows)", "fiedler": "f(x)",
        "orthogonal_procrustes": "f(rows, rows + x[:2])",
    },
    "ndimage": _IMAGES,
    "optimize": {
        "rosen": "f(x)", "rosen_der": "f(x)", "rosen_hess": "f(x)", "rosen_hess_prod": "f(x, y)",
    },
    "optimize.elementwise": {
        "find_root": "f(lambda x, c: x**3 - c, (p * 0, p * 0 + 9), args=(p,)).x",
        "find_minimum": "f(lambda x, c: (x - c) ** 2, (p * 0 - 9, p * 0 + 0.1, p * 0 + 9), "
        "args=(p,))",
        "bracket_root": "f(lambda x, c: x**3 - c, p * 0, args=(p,))",
        "bracket_minimum": "f(lambda x, c: (x - c) ** 2, p * 0, args=(p,))",
    },
    "signal": _SIGNAL,
    "signal.windows": _WINDOWS,
    "spatial.transform": _ROTATION,
    "special": _SPECIAL,
    "stats": _STATS,
}  # fmt: skip

# The arguments of functions without an entry, by module.
DEFAULTS = {"signal.windows": "f(8, xp=xp)", "stats": "f(x)", "signal": "f(x)"}
